//go:build linux

package tap

import (
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/recording"
)

// dnsSink is a recording that passes on each DNS query of a process.
type dnsSink struct {
	*recording.Recording
	pid  int
	seen chan struct{}
}

func (l dnsSink) Event(e recording.Event) {
	l.Recording.Event(e)
	if e.Kind == recording.KindDNSQuery && e.Subject == fmt.Sprintf("%s%d", recording.ProcessPrefix, l.pid) {
		l.seen <- struct{}{}
	}
}

func TestRealDNS(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer)
	names := fmt.Sprintf("127.%d.%d.54", 64+os.Getpid()>>8&63, os.Getpid()&255)
	server, err := net.ListenPacket("udp", names+":53")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	elsewhere, err := net.ListenPacket("udp", names+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer elsewhere.Close()
	const late = 20 * time.Millisecond
	for _, c := range []net.PacketConn{elsewhere, server} {
		go func() {
			buf := make([]byte, 512)
			for {
				n, from, err := c.ReadFrom(buf)
				if err != nil {
					return
				}
				await.Pass(late) // a name server that is slow
				_, _ = c.WriteTo(buf[:n], from)
			}
		}()
	}
	p := openTaped(t, Options{Nodes: nodeAt("127.0.0.1", startServer(t))})
	sink := dnsSink{p.rec, os.Getpid(), make(chan struct{}, 16)}
	p.recorder.Sink = sink
	p.start(t)
	ask := func(address string) {
		c, err := net.Dial("udp", address)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		if _, err := c.Write([]byte("question")); err != nil {
			t.Error(err)
		}
		_ = c.SetReadDeadline(time.Now().Add(2 * time.Minute))
		if _, err := c.Read(make([]byte, 512)); err != nil {
			t.Error(err)
		}
	}
	ask(elsewhere.LocalAddr().String())
	ask(server.LocalAddr().String())
	<-sink.seen
	p.stop(t)
	checked(t, p, "dns", dnsMade{os.Getpid(), int64(late), names}, checkDNS)
}
