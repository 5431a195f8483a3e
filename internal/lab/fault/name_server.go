package fault

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"slowpath/internal/lab/fleet"
)

// NameServer is a DNS server that is slow or loses queries. Its answer to every query for an IPv4 address is 127.0.0.1.
type NameServer struct {
	Delay     time.Duration // of each answer
	LoseEvery int           // every LoseEvery-th query gets no answer; 0: all get one

	late atomic.Int64 // added to Delay, in nanoseconds
}

// SetLate changes how much later than Delay answers come.
func (n *NameServer) SetLate(d time.Duration) { n.late.Store(int64(d)) }

// labName is the name by which clients of the lab dial a server. RFC 2606 reserves .test for tests.
const labName = "redis.lab.test"

// ByName replaces the host of HOST:PORT by a name that a NameServer knows.
func ByName(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return net.JoinHostPort(labName, port)
}

// Start starts the name server on a loopback address. A client uses it if argv is executed before its own command: argv
// makes a mount namespace with another /etc/resolv.conf, and keeps the pid.
func (n *NameServer) Start(l Lab) (argv []string, err error) {
	if err := needRoot("a name server at port 53"); err != nil {
		return nil, err
	}
	addr := fmt.Sprintf("127.%d.%d.53", 64+os.Getpid()>>8&63, os.Getpid()&255)
	conn, err := net.ListenPacket("udp", addr+":53")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCannot, err)
	}
	r := &resolver{NameServer: n, conn: conn}
	r.ended.Go(r.serve)
	l.Defer(func(context.Context) error {
		err := conn.Close()
		r.ended.Wait()
		l.Logf("name server: %d queries", r.queries)
		return err
	})
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("slowpath-resolver-%d", os.Getpid()))
	if err := l.Register(fleet.Entry{Kind: fleet.KindDir, Path: dir}); err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	conf := filepath.Join(dir, "resolv.conf")
	if err := os.WriteFile(conf, []byte("nameserver "+addr+"\n"), 0o600); err != nil {
		return nil, err
	}
	script := `mount --bind "$1" /etc/resolv.conf && shift && exec "$@"`
	return []string{"unshare", "--mount", "sh", "-c", script, "sh", conf}, nil
}

// resolver is a NameServer that runs.
type resolver struct {
	*NameServer
	conn    net.PacketConn
	queries int
	ended   sync.WaitGroup
}

// serve answers until the connection is closed.
func (r *resolver) serve() {
	buf := make([]byte, 512)
	for {
		n, from, err := r.conn.ReadFrom(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		answer, ok := answerTo(buf[:n])
		if err != nil || !ok {
			continue
		}
		r.queries++
		if r.LoseEvery > 0 && r.queries%r.LoseEvery == 0 {
			continue
		}
		r.ended.Go(func() {
			time.Sleep(r.Delay + time.Duration(r.late.Load())) // the fault itself
			_, _ = r.conn.WriteTo(answer, from)
		})
	}
}

// answerTo packs the answer to a query; ok is false where it is none.
func answerTo(query []byte) (packed []byte, ok bool) {
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil || len(m.Questions) == 0 {
		return nil, false
	}
	q := m.Questions[0]
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	if q.Type == dnsmessage.TypeA {
		m.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1},
			Body:   &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}},
		}}
	}
	packed, err := m.Pack()
	return packed, err == nil
}
