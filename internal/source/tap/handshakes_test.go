//go:build linux

package tap

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"slowpath/internal/recording"
)

// TestHandshakes: the handshake of each new connection is recorded once, by the end that saw it, and also where the
// server does not know the command.
func TestHandshakes(t *testing.T) {
	port := startServer(t)
	tap, rec := openAt(t, "127.0.0.1", port, Options{})
	unknown := "-ERR unknown subcommand 'SETINFO'. Try CLIENT HELP.\r\n"

	one := newTalk(t, port) // waits for each reply
	one.ask(unknown, "CLIENT", "SETINFO", "LIB-NAME", "go-redis(,go1.25)")
	one.ask(unknown, "client", "SETINFO", "lib-ver", "9.23.0")
	one.ask("+OK\r\n", "CLIENT", "SETNAME", "shop")
	one.ask("$-1\r\n", "GET", "x")

	all := newTalk(t, port) // asks everything at once
	if _, err := all.conn.Write([]byte(command("CLIENT", "SETINFO", "LIB-NAME", "Lettuce") + command("CLIENT",
		"SETINFO", "LIB-VER", "6.8.1.RELEASE/1a2b3c") + command("GET", "x"))); err != nil {
		t.Fatal(err)
	}
	all.expect(unknown + unknown + "$-1\r\n")

	none := newTalk(t, port)
	none.ask("$-1\r\n", "GET", "x")

	setInfo := []string{"CLIENT SETINFO", "CLIENT SETINFO"}
	want := map[string]recording.HandshakeDetail{
		one.conn.LocalAddr().String(): {
			Ops: append(setInfo[:2:2], "CLIENT SETNAME"), Library: "go-redis",
			Version: "9.23.0", RoundTrips: 3, Op: "GET",
		},
		all.conn.LocalAddr().String(): {
			Ops: setInfo, Library: "lettuce", Version: "6.8.1.re", RoundTrips: 0,
			Op: "GET",
		},
		none.conn.LocalAddr().String(): {Op: "GET"},
	}
	got := map[string]recording.HandshakeDetail{}
	for _, d := range handshakesUntilNow(t, tap, rec) {
		if other, twice := got[d.Client]; twice {
			t.Errorf("%s is recorded twice: %+v and %+v", d.Client, other, d)
		}
		got[d.Client] = recording.HandshakeDetail{
			Ops: d.Ops, Library: d.Library, Version: d.Version, RoundTrips: d.RoundTrips,
			Op: d.Op,
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, h := range rec.Histograms {
		if strings.Contains(h.Op, "LETTUCE") || strings.Contains(h.Op, "REDIS") {
			t.Errorf("a library is taken for a command: %q", h.Op)
		}
	}
}

// handshakesUntilNow reads what has come by now, closes the watch and gives the handshakes that it recorded.
func handshakesUntilNow(t *testing.T, tap *Tap, rec *recording.Recording) (out []recording.HandshakeDetail) {
	t.Helper()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := errors.Join(tap.Run(ended), tap.Close()); err != nil {
		t.Fatal(err)
	}
	for _, e := range rec.EventsOf(recording.SourceTap, "", recording.KindHandshake) {
		out = append(out, recording.DetailOf[recording.HandshakeDetail](e))
	}
	return out
}

// TestHandshakeBegun: an end that does not report each of its first calls, as a client's whose server's end parses for
// both, does not take a later one for the handshake.
func TestHandshakeBegun(t *testing.T) {
	for unseen, want := range map[uint64]int{0: 2, 4: 1} {
		c, rec := newChurner()
		c.unseen = unseen
		c.one(true)
		if n := len(rec.EventsOf(recording.SourceTap, "server", recording.KindHandshake)); n != want {
			t.Errorf("%d handshakes are recorded of a connection whose client's end reported call %d first, want %d", n,
				unseen+1, want)
		}
	}
}

// TestLibrariesLeaveRoom: libraries of more names than there are numbers for do not leave a command without one.
func TestLibrariesLeaveRoom(t *testing.T) {
	port := startServer(t)
	tap, rec := openAt(t, "127.0.0.1", port, Options{})
	names := newTalk(t, port)
	for i := range 200 { // OPS of bpf/types.h are 128
		names.ask("-ERR unknown subcommand 'SETINFO'. Try CLIENT HELP.\r\n", "CLIENT", "SETINFO", "LIB-NAME",
			fmt.Sprintf("lib%d", i))
	}
	late := newTalk(t, port)
	late.ask(":0\r\n", "STRLEN", "x")
	op := ""
	for _, d := range handshakesUntilNow(t, tap, rec) {
		if d.Client == late.conn.LocalAddr().String() {
			op = d.Op
		}
	}
	if op != "STRLEN" {
		t.Errorf("the command after 200 libraries is %q, want STRLEN", op)
	}
}
