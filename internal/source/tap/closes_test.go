//go:build linux

package tap

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"slowpath/internal/recording"
)

// closes is a recording that passes on each end of a connection.
type closes struct {
	*recording.Recording
	record func(recording.ConnDetail)
}

func (c closes) Event(e recording.Event) {
	c.Recording.Event(e)
	if e.Kind == recording.KindClose {
		c.record(recording.DetailOf[recording.ConnDetail](e))
	}
}

// TestCloses: who ended a connection, and how, is recorded the same at both ends.
func TestCloses(t *testing.T) {
	port := startServer(t)
	address := fmt.Sprintf("127.0.0.1:%d", port)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.Addr().(*net.TCPAddr).AddrPort()
	l.Close()
	tap, rec := openAt(t, "127.0.0.1", port, Options{})
	tap.Nodes = append(tap.Nodes, Node{Address: "nobody", Remote: nobody})
	tap.recorder.numbered = tap.Nodes
	watchPort(t, tap.kernel, int(nobody.Port()))
	if err := tap.kernel.coll.Maps[kernelMapNodes].Put(kernelNodeKey{
		Addr: nobody.Addr().As16(), Id: uint32(nobody.Port()), Net: anyNet,
	}, uint32(len(tap.Nodes))); err != nil {
		t.Fatal(err)
	}
	type want struct{ by, reason string }
	wants := map[string][2]want{} // by the client's address: as the server's end saw it, and the client's
	open := func(server, client want) *net.TCPConn {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		(&talk{t: t, conn: c}).ask("+PONG\r\n", "PING")
		wants[c.LocalAddr().String()] = [2]want{server, client}
		return c.(*net.TCPConn)
	}
	both := func(w want) (want, want) { return w, w }

	open(both(want{recording.Client, ""})).Close() // FIN
	c := open(both(want{recording.Client, recording.CloseReset}))
	if err := c.SetLinger(0); err != nil {
		t.Fatal(err)
	}
	c.Close() // RST
	c = open(both(want{recording.Client, recording.CloseReset}))
	if _, err := fmt.Fprint(c, command("ECHO", "unread")); err != nil {
		t.Fatal(err)
	}
	whenFull(t, c)
	c.Close() // with a reply that was not read: RST
	c = open(both(want{recording.Server, ""}))
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

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	left := 2*len(wants) + 1 // both ends of each, and the refused one
	tap.recorder.Sink = closes{rec, func(d recording.ConnDetail) {
		if _, ok := wants[d.Client]; ok || d.Reason == recording.CloseRefused {
			left--
		}
		if left == 0 {
			cancel()
		}
	}}
	if err := tap.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if err := tap.Close(); err != nil {
		t.Error(err)
	}
	rec.Index()
	seen := 0
	for _, e := range rec.EventsOf(recording.SourceTap, "server", recording.KindClose) {
		d := recording.DetailOf[recording.ConnDetail](e)
		w, ok := wants[d.Client]
		if !ok {
			continue
		}
		seen++
		end := 0
		if d.Side == recording.Client {
			end = 1
		}
		if got := (want{d.By, d.Reason}); got != w[end] {
			t.Errorf("the %s's end: %+v, want %+v", d.Side, got, w[end])
		}
	}
	if seen != 2*len(wants) {
		t.Errorf("%d ends of %d connections were recorded", seen, len(wants))
	}
	refused := rec.EventsOf(recording.SourceTap, "nobody", recording.KindClose)
	if len(refused) != 1 {
		t.Fatalf("%d connections to nobody", len(refused))
	}
	if d := recording.DetailOf[recording.ConnDetail](refused[0]); d.By != "" || d.Reason != recording.CloseRefused ||
		d.DialNs <= 0 || d.AgeNs != 0 {
		t.Errorf("refused: %+v", d)
	}
}

// TestCloseIsNoticedLate: a client that does not read from an idle connection notices that the server has closed it
// when it sends its next request. How long it had been idle at the server's FIN is known at the client's end alone.
func TestCloseIsNoticedLate(t *testing.T) {
	h := newOtherHost(t)
	port := startServerAt(t, h.here)
	tap, rec := openAt(t, h.here, port, Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	const idle, late = 400 * time.Millisecond, 300 * time.Millisecond
	c := h.dial(t, port)
	client := c.LocalAddr().String()
	var detail recording.ConnDetail
	tap.recorder.Sink = closes{rec, func(d recording.ConnDetail) {
		if d.Client == client && d.Side == recording.Client {
			detail = d
			cancel()
		}
	}}
	done := make(chan error)
	go func() { done <- tap.Run(ctx) }()
	(&talk{t: t, conn: c}).ask("+PONG\r\n", "PING")
	time.Sleep(idle)
	dialTalk(t, h.here, port, nil).ask(":1\r\n", "CLIENT", "KILL", "ADDR", client)
	time.Sleep(late)
	if _, err := fmt.Fprint(c, command("PING")); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := tap.Close(); err != nil {
		t.Error(err)
	}
	if detail.By != recording.Server || detail.Reason != recording.CloseReset ||
		detail.PeerIdleNs < int64(idle) || detail.NoticedNs < int64(late) {
		t.Errorf("%+v, want the server to have closed it after %v, noticed %v later", detail, idle, late)
	}
}
