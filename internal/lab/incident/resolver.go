package incident

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// resolver is a name server that knows one answer to all questions, and takes its time.
type resolver struct {
	conn   net.PacketConn
	answer netip.Addr
	delay  time.Duration // of each answer
	lose   int           // each so-manieth question gets none; 0: all do

	mu    sync.Mutex
	count int
	ended sync.WaitGroup
}

// labName is what the clients of the lab dial; .test is kept for tests (RFC 2606).
const labName = "redis.lab.test"

// slowNames starts a resolver on a loopback address of its own, and returns what is executed before a client that is to
// ask it: in a mount namespace of its own, which ends with it, /etc/resolv.conf is another file.
func (l *Lab) slowNames(delay time.Duration, lose int) (lead []string, err error) {
	if err := needRoot("a name server at port 53"); err != nil {
		return nil, err
	}
	addr := fmt.Sprintf("127.%d.%d.53", 64+os.Getpid()>>8&63, os.Getpid()&255)
	conn, err := net.ListenPacket("udp", addr+":53")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCannot, err)
	}
	r := &resolver{conn: conn, answer: netip.MustParseAddr("127.0.0.1"), delay: delay, lose: lose}
	r.ended.Go(r.serve)
	l.Defer(func(context.Context) error {
		err := conn.Close()
		r.ended.Wait()
		fmt.Fprintf(l.Log, "resolver: %d questions\n", r.count)
		return err
	})
	dir, err := l.clientDir("resolver")
	if err != nil {
		return nil, err
	}
	conf := filepath.Join(dir, "resolv.conf")
	if err := os.WriteFile(conf, []byte("nameserver "+addr+"\n"), 0o600); err != nil {
		return nil, err
	}
	return []string{
		"unshare", "--mount", "sh", "-c", `mount --bind "$1" /etc/resolv.conf && shift && exec "$@"`, "sh",
		conf,
	}, nil
}

// serve answers until the connection is closed.
func (r *resolver) serve() {
	buf := make([]byte, 512)
	for {
		n, from, err := r.conn.ReadFrom(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		reply, ok := r.reply(buf[:n])
		if err != nil || !ok {
			continue
		}
		r.ended.Go(func() {
			time.Sleep(r.delay) // the fault itself
			_, _ = r.conn.WriteTo(reply, from)
		})
	}
}

// reply packs the answer to a question; ok is false where it gets none.
func (r *resolver) reply(question []byte) (packed []byte, ok bool) {
	var m dnsmessage.Message
	if err := m.Unpack(question); err != nil || len(m.Questions) == 0 {
		return nil, false
	}
	r.mu.Lock()
	r.count++
	lost := r.lose > 0 && r.count%r.lose == 0
	r.mu.Unlock()
	q := m.Questions[0]
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	if q.Type == dnsmessage.TypeA {
		m.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{
				Name: q.Name, Type: q.Type, Class: q.Class,
				TTL: 1,
			},
			Body: &dnsmessage.AResource{A: r.answer.As4()},
		}}
	}
	packed, err := m.Pack()
	return packed, err == nil && !lost
}

// byName is an address with the name that the resolver knows.
func byName(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return net.JoinHostPort(labName, port)
}
