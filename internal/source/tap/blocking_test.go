//go:build linux

package tap

import (
	"errors"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"slowpath/internal/recording"
)

// TestBlockingCommandsAreTheSame: the programs know the commands that wait by design by their first eight letters.
func TestBlockingCommandsAreTheSame(t *testing.T) {
	b, err := os.ReadFile("bpf/commands.h")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{} // #define NAME WORD(…)
	for _, m := range regexp.MustCompile(`(?m)^#define (\w+) WORD\((.*)\)$`).FindAllStringSubmatch(string(b), -1) {
		names[m[1]] = letters(m[2])
	}
	body := regexp.MustCompile(`(?s)bool may_block\(.*?\n}`).FindString(string(b))
	var got []string
	for _, m := range regexp.MustCompile(`case (\w+)(?:\((.*)\))?:`).FindAllStringSubmatch(body, -1) {
		if m[1] == "WORD" {
			got = append(got, letters(m[2]))
		} else {
			got = append(got, names[m[1]])
		}
	}
	var want []string
	for _, name := range recording.BlockingCommands() {
		want = append(want, name[:min(len(name), 8)])
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("may_block of bpf/commands.h has %v, recording.BlockingCommands %v", got, want)
	}
}

// letters are those of a WORD of bpf/commands.h.
func letters(args string) string {
	var s strings.Builder
	for _, m := range regexp.MustCompile(`'(\w)'`).FindAllStringSubmatch(args, -1) {
		s.WriteString(m[1])
	}
	return s.String()
}

// TestWaitsByDesign: what commands wait for by design is in no histogram, is no slow call, and no time in flight; the
// same commands are usual ones where they cannot wait. A call behind one on its connection is slow.
func TestWaitsByDesign(t *testing.T) {
	for _, address := range []string{"127.0.0.1", "127.0.0.2"} { // within this host, as from another
		t.Run(address, func(t *testing.T) { testWaitsByDesign(t, address) })
	}
}

// byDesign is for how long commands wait at least; a call is slow from 10 ms on.
const byDesign = 60 * time.Millisecond

func testWaitsByDesign(t *testing.T, address string) {
	const handshakeCalls = 8 // HANDSHAKE_CALLS of bpf/types.h
	port := startServerAt(t, address)
	old := dialTalk(t, address, port, nil) // it waits since before the watch
	old.send("BRPOP", "old", "0")
	old.taken(port)
	tap, rec := openAt(t, address, port, Options{Slow: 10 * time.Millisecond})
	other, k := dialTalk(t, address, port, nil), dialTalk(t, address, port, nil)
	shared := dialTalk(t, address, port, nil)
	pushed := func(k *talk, push ...string) {
		t.Helper()
		k.taken(port)
		time.Sleep(byDesign)
		other.send(push...)
	}
	waits := 0
	late := func(reply string, push []string, args ...string) {
		t.Helper()
		k.send(args...)
		pushed(k, push...)
		k.expect(reply)
		waits++
	}
	list, pop := "*2\r\n$1\r\nl\r\n$1\r\nv\r\n", []string{"LPUSH", "l", "v"}
	for range handshakeCalls + 2 { // beyond those that are reported in any case
		late(list, pop, "BLPOP", "l", "0")
	}
	late(list, pop, "brpop", "l", "0")
	late("$1\r\nv\r\n", pop, "BRPOPLPUSH", "l", "m", "0")
	late("$1\r\nv\r\n", pop, "BLMOVE", "l", "m", "LEFT", "RIGHT", "0")
	late("*3\r\n$1\r\nz\r\n$1\r\nv\r\n$1\r\n1\r\n", []string{"ZADD", "z", "1", "v"}, "BZPOPMIN", "z", "0")
	other.send("XGROUP", "CREATE", "s", "BLOCK", "$", "MKSTREAM")
	entry := "*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n"
	late(entry, []string{"XADD", "s", "1-1", "f", "v"}, "xread", "COUNT", "5", "block", "0", "STREAMS", "s", "$")
	k.ask(":0\r\n", "WAIT", "0", "0")
	waits++
	// A group and a consumer with the name of the option are not the option.
	k.ask(entry, "XREADGROUP", "GROUP", "BLOCK", "BLOCK", "STREAMS", "s", ">")
	k.ask("*-1\r\n", "XREAD", "STREAMS", "s", "1-1")
	k.ask("+OK\r\n", "MULTI")
	k.ask("+QUEUED\r\n", "BLPOP", "none", "0")
	waits++
	k.ask("*1\r\n*-1\r\n", "EXEC")

	other.send("LPUSH", "old", "v")
	old.expect("*2\r\n$3\r\nold\r\n$1\r\nv\r\n")
	old.send("BRPOP", "old", "0") // by now it is not known which reply belongs to it
	pushed(old, "LPUSH", "old", "v")
	old.expect("*2\r\n$3\r\nold\r\n$1\r\nv\r\n")

	shared.send("BLPOP", "l", "0")
	shared.send("STRLEN", "x")
	pushed(shared, pop...)
	shared.expect(list + ":0\r\n")

	for _, c := range []*talk{k, shared, old} {
		c.conn.Close()
	}
	other.alone()
	handshakesUntilNow(t, tap, rec)
	checkWaits(t, rec, waits, k, shared)
}

// checkWaits looks at what testWaitsByDesign has made.
func checkWaits(t *testing.T, rec *recording.Recording, waits int, k, shared *talk) {
	t.Helper()
	for _, h := range rec.Histograms {
		if _, op, _ := strings.Cut(h.Op, " "); recording.MayBlock(op) && !strings.HasPrefix(op, "XREAD") || op == "?" {
			t.Errorf("a histogram of %q", h.Op)
		}
	}
	slow := 0
	for _, c := range rec.Calls {
		switch {
		case c.Op == "STRLEN" && c.Conn == shared.conn.LocalAddr().String():
			slow++
		case c.Op == "?" || recording.MayBlock(c.Op) && !strings.HasPrefix(c.Op, "XREAD"):
			t.Errorf("a slow call: %+v", c)
		}
	}
	if slow == 0 {
		t.Error("a call behind a blocking command is not slow")
	}
	behind := 0
	for _, e := range rec.EventsOf(recording.SourceTap, "", recording.KindBlockingCommand) {
		if d := recording.DetailOf[recording.BlockingCommandDetail](e); d.Client == shared.conn.LocalAddr().String() {
			behind += d.Behind
		}
	}
	if behind != 1 {
		t.Errorf("%d calls were seen behind a blocking command, want 1", behind)
	}
	seen := map[string]bool{}
	for _, e := range rec.EventsOf(recording.SourceTap, "", recording.KindClose) {
		d := recording.DetailOf[recording.ConnDetail](e)
		if d.Client != k.conn.LocalAddr().String() {
			continue
		}
		seen[d.Side] = true
		usual := int64(len(k.want) - 2) // without WAIT and BLPOP
		wrong := d.Side == recording.Server && d.Calls != usual || d.Calls > usual
		if wrong || d.InFlightNs >= int64(waits)*int64(byDesign)/2 {
			t.Errorf("at the %s's end %d calls and %d ns in flight, want %d and little: %d waited", d.Side, d.Calls,
				d.InFlightNs, usual, waits)
		}
		if d.Side == recording.Client && d.Nagle != recording.NagleOff {
			t.Errorf("Go sets TCP_NODELAY; the recording says %q", d.Nagle)
		}
	}
	if len(seen) != 2 {
		t.Errorf("the end of the connection was seen at %v", seen)
	}
}

// TestReadBeforePublished: a client that polls its socket reads a reply before the server's end has told what it did
// for it. The next reply counts both; of the two, only the one that does not wait by design is a call.
func TestReadBeforePublished(t *testing.T) {
	const rounds = 500
	port := startServer(t)
	tap, rec := openAt(t, "127.0.0.1", port, Options{})
	other, k := newTalk(t, port), newTalk(t, port)
	raw, err := k.conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 64)
	polled := func(reply string, args ...string) {
		t.Helper()
		k.send(args...)
		err := raw.Control(func(fd uintptr) {
			n, err := -1, error(unix.EAGAIN)
			for end := time.Now().Add(time.Minute); errors.Is(err, unix.EAGAIN) && time.Now().Before(end); {
				n, err = unix.Read(int(fd), got)
			}
			if err != nil || string(got[:n]) != reply {
				t.Errorf("got %q, want %q (%v)", got[:max(n, 0)], reply, err)
			}
		})
		if err != nil || t.Failed() {
			t.FailNow()
		}
	}
	for range rounds {
		polled(":0\r\n", "WAIT", "0", "0")
		polled("+PONG\r\n", "PING")
	}
	k.send("PING")
	k.taken(port)
	k.expect("+PONG\r\n")
	k.conn.Close()
	other.alone()
	handshakesUntilNow(t, tap, rec)
	seen := 0
	for _, e := range rec.EventsOf(recording.SourceTap, "", recording.KindClose) {
		if d := recording.DetailOf[recording.ConnDetail](e); d.Client == k.conn.LocalAddr().String() {
			seen++
			if d.Calls != rounds+1 {
				t.Errorf("at the %s's end %d calls were seen, want %d", d.Side, d.Calls, rounds+1)
			}
		}
	}
	if seen != 2 {
		t.Errorf("%d ends of the connection were seen, want 2", seen)
	}
}

// TestTLSWaitsByDesign: under TLS the names of commands tell which of them wait by design, wherever they stand in a
// turn.
func TestTLSWaitsByDesign(t *testing.T) {
	pid, port, _ := startTLS(t)
	r := openRaw(t, port, allCalls())
	r.hook(t, pid, roleServer)
	k := newTLSTalk(t, port)
	var want []bool
	ask := func(waits bool, reply string, requests ...[]string) {
		t.Helper()
		var text strings.Builder
		for _, args := range requests {
			text.WriteString(command(args...))
		}
		k.write(text.String())
		k.expect(reply)
		want = append(want, waits)
	}
	none := "*-1\r\n"
	ask(false, "+PONG\r\n", []string{"PING"})
	ask(true, none, []string{"blpop", "list", "0.01"})
	ask(true, none, []string{"XREAD", "COUNT", "2", "BLOCK", "10", "STREAMS", "s", "$"})
	ask(false, none, []string{"XREAD", "COUNT", "2", "STREAMS", "s", "0"})
	ask(true, "+PONG\r\n"+none, []string{"PING"}, []string{"BRPOP", "BLOCK", "0.01"})
	ask(false, ":0\r\n", []string{"LLEN", "BLOCK"})
	k.write(command("BLPOP", "list", "0")) // its consumer ends
	atRest(t, port)
	k.conn.Close()
	names := r.names(t)
	calls, counts := r.finish(t)
	var got []bool
	for _, e := range calls {
		if e.Role == roleServer && names[e.Op] != "?" {
			got = append(got, e.Flags&flagBlocking != 0)
		}
	}
	for _, e := range r.closes {
		if e.Role == roleServer && (e.Outstanding != 1 || e.Blocking == 0) {
			t.Errorf("at the end %d requests had no reply, blocking %d", e.Outstanding, e.Blocking)
		}
	}
	if !slices.Equal(got, want) || counts["blocking"] != 3 || len(r.closes) == 0 {
		t.Errorf("got %v, want %v; %v", got, want, counts)
	}
}
