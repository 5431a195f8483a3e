//go:build linux

package tap

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/recording"
)

// seenCloses passes on each end of a connection that closes.
type seenCloses struct {
	*recording.Recording
	closed chan recording.ConnDetail
}

func (c seenCloses) Event(e recording.Event) {
	c.Recording.Event(e)
	if e.Kind == recording.KindClose {
		c.closed <- recording.DetailOf[recording.ConnDetail](e)
	}
}

// seeCloses has a watch that has not begun yet pass them on.
func seeCloses(p *taper) <-chan recording.ConnDetail {
	c := seenCloses{p.rec, make(chan recording.ConnDetail, 1000)}
	p.recorder.Sink = c
	return c.closed
}

// untilClosed waits for so many ends of connections that are wanted.
func untilClosed(t *testing.T, closed <-chan recording.ConnDetail, n int, wanted func(recording.ConnDetail) bool) {
	t.Helper()
	await.Until(t, "the ends of connections are recorded", func() bool {
		select {
		case d := <-closed:
			if wanted(d) {
				n--
			}
		default:
		}
		return n == 0
	})
}

func TestRealCloses(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer)
	port := startServer(t)
	address := fmt.Sprintf("127.0.0.1:%d", port)
	nobody := onePort(t, 1)
	p := openTaped(t, Options{Nodes: []Node{
		{Address: "server", Remote: netip.MustParseAddrPort(address)}, {Address: "nobody", Remote: nobody},
	}})
	closed := seeCloses(p)
	made := closesMade{map[string]closeWants{}}
	open := func(by, reason string) *net.TCPConn {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		(&talk{t: t, conn: c}).ask("+PONG\r\n", "PING")
		made.Wants[c.LocalAddr().String()] = closeWants{closeWant{by, reason}, closeWant{by, reason}}
		return c.(*net.TCPConn)
	}

	open(recording.Client, "").Close() // FIN
	c := open(recording.Client, recording.CloseReset)
	if err := c.SetLinger(0); err != nil {
		t.Fatal(err)
	}
	c.Close() // RST
	c = open(recording.Client, recording.CloseReset)
	if _, err := fmt.Fprint(c, command("ECHO", "unread")); err != nil {
		t.Fatal(err)
	}
	whenFull(t, c)
	c.Close() // with a reply that was not read: RST
	c = open(recording.Server, "")
	other := newTalk(t, port)
	other.send("CLIENT", "KILL", "ADDR", c.LocalAddr().String())
	other.expect(":1\r\n")
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("a connection that was killed can be read")
	}
	c.Close()
	if c, err := net.Dial("tcp", nobody.String()); err == nil {
		c.Close()
		t.Error("somebody listens")
	}

	p.start(t)
	untilClosed(t, closed, 2*len(made.Wants)+1, func(d recording.ConnDetail) bool { // and the refused one
		_, ours := made.Wants[d.Client]
		return ours || d.Reason == recording.CloseRefused
	})
	p.stop(t)
	checked(t, p, "closes", made, checkCloses)
}

func TestRealCloseIsNoticedLate(t *testing.T) {
	needs.Real(t, needs.BPF, needs.NetworkNamespaces, needs.RedisServer)
	h := newOtherHost(t)
	port := startServerAt(t, h.here)
	p := openTaped(t, Options{Nodes: nodeAt(h.here, port)})
	closed := seeCloses(p)
	c := h.dial(t, port)
	made := closesLate{c.LocalAddr().String(), 400 * time.Millisecond, 300 * time.Millisecond}
	p.start(t)
	(&talk{t: t, conn: c}).ask("+PONG\r\n", "PING")
	await.Pass(made.Idle)
	dialTalk(t, h.here, port, nil).ask(":1\r\n", "CLIENT", "KILL", "ADDR", made.Client)
	await.Pass(made.Late)
	if _, err := fmt.Fprint(c, command("PING")); err != nil {
		t.Fatal(err)
	}
	untilClosed(t, closed, 1, func(d recording.ConnDetail) bool {
		return d.Client == made.Client && d.Side == recording.Client
	})
	p.stop(t)
	checked(t, p, "closes-late", made, checkNoticedLate)
}

func TestRealCloseTellsWhatWaited(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer)
	port := startServer(t)
	p := openTaped(t, Options{Nodes: nodeAt("127.0.0.1", port)})
	closed := seeCloses(p)
	k := newTalk(t, port)
	k.ask("+PONG\r\n", "PING")
	made := closesWaiting{k.conn.LocalAddr().String(), int64(k.send("BLPOP", "nothing", "0"))}
	k.taken(port)
	k.conn.Close()
	p.start(t)
	untilClosed(t, closed, 1, func(d recording.ConnDetail) bool { return d.Client == made.Client && d.Waiting > 0 })
	p.stop(t)
	checked(t, p, "closes-waiting", made, checkCloseWaiting)
}
