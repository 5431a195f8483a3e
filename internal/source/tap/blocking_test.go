//go:build linux

package tap

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

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

// byDesign is for how long commands wait at least; a call is slow from 10 ms on.
const byDesign = 60 * time.Millisecond

// waitsMade is what TestRealWaitsByDesign makes.
type waitsMade struct {
	Waits          int    // calls that waited by design
	Usual, UsualNs int64  // the others on the same connection, and how long they took their client
	Client, Shared string // that connection, and the one with a call behind one that waited
}

// waitsTapes are the tapes of TestRealWaitsByDesign, and the server's address: within this host, as from another.
var waitsTapes = map[string]string{"waits": "127.0.0.1", "waits-other-address": "127.0.0.2"}

// TestWaitsByDesign: what commands wait for by design is in no histogram, is no slow call, and no time in flight; the
// same commands are usual ones where they cannot wait. A call behind one on its connection is slow.
func TestWaitsByDesign(t *testing.T) {
	for name := range waitsTapes {
		t.Run(name, func(t *testing.T) {
			rec, made := playTape[waitsMade](t, name, nil)
			checkWaits(t, rec, made)
		})
	}
}

func checkWaits(t *testing.T, rec *recording.Recording, made waitsMade) {
	t.Helper()
	for _, h := range rec.Histograms {
		if _, op, _ := strings.Cut(h.Op, " "); recording.MayBlock(op) && !strings.HasPrefix(op, "XREAD") || op == "?" {
			t.Errorf("a histogram of %q", h.Op)
		}
	}
	slow := 0
	for _, c := range rec.Calls {
		switch {
		case c.Op == "STRLEN" && c.Conn == made.Shared:
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
		if d := recording.DetailOf[recording.BlockingCommandDetail](e); d.Client == made.Shared {
			behind += d.Behind
		}
	}
	if behind != 1 {
		t.Errorf("%d calls were seen behind a blocking command, want 1", behind)
	}
	seen := map[string]bool{}
	for _, e := range rec.EventsOf(recording.SourceTap, "", recording.KindClose) {
		d := recording.DetailOf[recording.ConnDetail](e)
		if d.Client != made.Client {
			continue
		}
		seen[d.Side] = true
		wrong := d.Side == recording.Server && d.Calls != made.Usual || d.Calls > made.Usual
		if wrong || d.InFlightNs > made.UsualNs {
			t.Errorf("at the %s's end %d calls and %d ns in flight, want %d and at most %d: %d waited", d.Side, d.Calls,
				d.InFlightNs, made.Usual, made.UsualNs, made.Waits)
		}
		if d.Side == recording.Client && d.Nagle != recording.NagleOff {
			t.Errorf("Go sets TCP_NODELAY; the recording says %q", d.Nagle)
		}
	}
	if len(seen) != 2 {
		t.Errorf("the end of the connection was seen at %v", seen)
	}
}
