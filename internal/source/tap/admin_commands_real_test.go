//go:build linux

package tap

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"slowpath/internal/house/needs"
	"slowpath/internal/recording"
)

// TestRealAdminCommands: each command that changes the server is recorded once with its connection, also on one that is
// old and carries fast calls, at the first call and in a pipeline; not one that failed, and no argument.
func TestRealAdminCommands(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer)
	port := startServer(t)
	old := newTalk(t, port)
	old.ask("+PONG\r\n", "PING")
	w := watchTaped(t, Options{Nodes: nodeAt("127.0.0.1", port)})
	const ok = "+OK\r\n"
	for range 40 { // the first calls of a connection are reported in any case
		old.ask("$-1\r\n", "GET", "k")
	}
	old.ask(ok, "config", "set", "masterauth", "secret-of-a-test")
	old.ask("$-1\r\n", "GET", "k")
	old.ask(ok, "CONFIG", "RESETSTAT")
	old.send("CONFIG", "GET", "hz")
	old.expect("*2\r\n$2\r\nhz\r\n$2\r\n10\r\n")
	for range 3 {
		old.send("CLIENT", "UNPAUSE")
	}
	old.expect(ok + ok + ok)
	old.send("CONFIG", "SET", "hz", "many")
	old.expect("-ERR CONFIG SET failed (possibly related to argument 'hz') - " +
		"argument couldn't be parsed into an integer\r\n")
	fresh := newTalk(t, port)
	fresh.ask(ok, "FLUSHALL")
	atRest(t, port)
	w.stop(t)
	var got []string
	for _, e := range w.rec.Events {
		if strings.Contains(e.Detail, "secret-of-a-test") {
			t.Errorf("an argument was recorded: %s", e.Detail)
		}
		if e.Kind != recording.KindAdminCommand {
			continue
		}
		d := recording.DetailOf[recording.AdminCommandDetail](e)
		got = append(got, d.Op)
		from := old
		if d.Op == "FLUSHALL" {
			from = fresh
		}
		if want := fmt.Sprint(from.conn.LocalAddr()); d.Client != want || e.DurationNs <= 0 {
			t.Errorf("%s is from %s in %d ns, want %s", d.Op, d.Client, e.DurationNs, want)
		}
	}
	slices.Sort(got)
	want := []string{
		"CLIENT UNPAUSE", "CLIENT UNPAUSE", "CLIENT UNPAUSE", "CONFIG RESETSTAT", "CONFIG SET", "FLUSHALL",
	}
	if !slices.Equal(got, want) {
		t.Errorf("recorded %q, want %q", got, want)
	}
}
