//go:build linux

package tap

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"slowpath/internal/recording"
)

// TestGreeting: what new connections say of themselves is told once each, by the end that saw it, and also where the server does not know the command.
func TestGreeting(t *testing.T) {
	port := startServer(t)
	tap, rec := openAt(t, "127.0.0.1", port, Options{})
	tap.book.self = -1 // this process is the client
	unknown := "-ERR unknown subcommand 'SETINFO'. Try CLIENT HELP.\r\n"

	one := newTalk(t, port) // waits for each reply
	one.ask(unknown, "CLIENT", "SETINFO", "LIB-NAME", "go-redis(,go1.25)")
	one.ask(unknown, "client", "SETINFO", "lib-ver", "9.23.0")
	one.ask("+OK\r\n", "CLIENT", "SETNAME", "shop")
	one.ask("$-1\r\n", "GET", "x")

	all := newTalk(t, port) // asks everything at once
	for _, command := range [][]string{{"CLIENT", "SETINFO", "LIB-NAME", "Lettuce"}, {"CLIENT", "SETINFO", "LIB-VER", "6.8.1.RELEASE/1a2b3c"}, {"GET", "x"}} {
		all.send(command...)
	}
	all.expect(unknown + unknown + "$-1\r\n")

	none := newTalk(t, port) // and a slow call, which its own end tells of, too
	none.ask("$-1\r\n", "GET", "x")
	none.ask("+OK\r\n", "DEBUG", "SLEEP", "0.05")

	ended, cancel := context.WithCancel(t.Context())
	cancel() // what has come by now is read
	if err := errors.Join(tap.Run(ended), tap.Close()); err != nil {
		t.Fatal(err)
	}
	setInfo := []string{"CLIENT SETINFO", "CLIENT SETINFO"}
	want := map[string]recording.HandshakeDetail{
		one.conn.LocalAddr().String():  {Ops: append(setInfo[:2:2], "CLIENT SETNAME"), Library: "go-redis", Version: "9.23.0", Trips: 3, Op: "GET"},
		all.conn.LocalAddr().String():  {Ops: setInfo, Library: "lettuce", Version: "6.8.1.re", Trips: 0, Op: "GET"},
		none.conn.LocalAddr().String(): {Op: "GET"},
	}
	got := map[string]recording.HandshakeDetail{}
	for _, e := range rec.Events {
		if e.Kind != recording.KindHandshake {
			continue
		}
		d := recording.DetailOf[recording.HandshakeDetail](e)
		if other, twice := got[d.Client]; twice {
			t.Errorf("%s is told of twice: %+v and %+v", d.Client, other, d)
		}
		got[d.Client] = recording.HandshakeDetail{Ops: d.Ops, Library: d.Library, Version: d.Version, Trips: d.Trips, Op: d.Op}
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
