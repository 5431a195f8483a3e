//go:build linux

package tap

import (
	"strings"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"slowpath/internal/recording"
)

// countsOf are the calls in the histograms of a recording, by node, end and command. How long threads waited for some
// of them is left out.
func countsOf(t *testing.T, rec *recording.Recording) map[string]int64 {
	t.Helper()
	out := map[string]int64{}
	for _, h := range rec.Histograms {
		if side, _, _ := strings.Cut(h.Op, " "); side != recording.Client && side != recording.Server {
			continue
		}
		d, err := hdrhistogram.Decode(h.HDR)
		if err != nil {
			t.Fatal(err)
		}
		out[h.Node+" "+h.Op] += d.TotalCount()
	}
	return out
}

// spacesMade are the servers of two network namespaces, and how often each was asked.
type spacesMade struct {
	One, Two string
	Calls    int64
}

var spacesTapes = map[string]string{"spaces-ipv4": "127.0.0.1", "spaces-ipv6": "::1"}

// TestSameAddresses: connections of two network namespaces with the same four addresses and ports are two connections:
// each end has its own other end, over IPv4 and IPv6. One that is of no watched server takes no room.
func TestSameAddresses(t *testing.T) {
	for name := range spacesTapes {
		t.Run(name, func(t *testing.T) {
			rec, made := playTape[spacesMade](t, name, nil)
			checkSameAddresses(t, rec, made)
		})
	}
}

func checkSameAddresses(t *testing.T, rec *recording.Recording, made spacesMade) {
	t.Helper()
	got := countsOf(t, rec)
	for _, k := range []string{made.One + " server GET", made.Two + " server STRLEN"} {
		if got[k] != made.Calls {
			t.Errorf("%s: %d of %d calls: %v", k, got[k], made.Calls, got)
		}
	}
	for _, k := range []string{made.One + " client GET", made.Two + " client STRLEN"} {
		if got[k] == 0 || got[k] > made.Calls {
			t.Errorf("%s: %d of %d calls: %v", k, got[k], made.Calls, got)
		}
	}
	if len(got) != 8 {
		t.Errorf("calls of others: %v", got)
	}
	if n, _ := rec.Series(recording.SourceTap, recording.SubjectSelf, "tap.conns").Last(); n != 4 {
		t.Errorf("%v ends of connections took room, want 4", n)
	}
	slow := map[string]int{}
	for _, call := range rec.Calls {
		if call.Op == "DEBUG SLEEP" {
			slow[call.Node] += int((call.EndNs - call.StartNs) / 10e6)
		}
	}
	if slow[made.One] < 3 || slow[made.Two] < 5 || len(slow) != 2 {
		t.Errorf("slow calls, in units of 10 ms at least: %v", slow)
	}
}
