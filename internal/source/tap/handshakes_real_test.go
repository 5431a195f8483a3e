//go:build linux

package tap

import (
	"fmt"
	"testing"

	"slowpath/internal/house/needs"
	"slowpath/internal/recording"
)

func TestRealHandshakes(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer)
	port := startServer(t)
	p := openTaped(t, Options{Nodes: nodeAt("127.0.0.1", port)})
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
	p.readAll(t)
	checked(t, p, "handshakes", handshakesMade{want}, checkHandshakes)
}

// TestLibrariesLeaveRoom: libraries of more names than there are numbers for do not leave a command without one.
func TestLibrariesLeaveRoom(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer)
	port := startServer(t)
	p := openTaped(t, Options{Nodes: nodeAt("127.0.0.1", port)})
	names := newTalk(t, port)
	for i := range 200 { // OPS of bpf/types.h are 128
		names.ask("-ERR unknown subcommand 'SETINFO'. Try CLIENT HELP.\r\n", "CLIENT", "SETINFO", "LIB-NAME",
			fmt.Sprintf("lib%d", i))
	}
	late := newTalk(t, port)
	late.ask(":0\r\n", "STRLEN", "x")
	op := ""
	p.readAll(t)
	for _, d := range handshakesOf(p.rec) {
		if d.Client == late.conn.LocalAddr().String() {
			op = d.Op
		}
	}
	if op != "STRLEN" {
		t.Errorf("the command after 200 libraries is %q, want STRLEN", op)
	}
}
