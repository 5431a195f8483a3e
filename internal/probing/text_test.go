package probing

import (
	"testing"
	"time"

	"slowpath/internal/recording"
	"slowpath/internal/report/layout"
	"slowpath/internal/source/probe"
)

func TestLiveLineFits(t *testing.T) {
	call := recording.Call{Conn: probe.Kept, EndNs: int64(1234 * time.Millisecond)}
	var ts []*tally
	for _, address := range []string{"10.11.12.13:16379", "proxy.cache.internal.example:6379", "[2001:db8::1]:6379"} {
		tl := newTally(address)
		tl.add(call, 1234*time.Millisecond)
		ts = append(ts, tl)
		for _, width := range []int{20, 79, 159} {
			line := layout.Shorten(liveLine(ts, time.Hour, width), width, "...")
			if n := layout.Width(line); n > width {
				t.Errorf("%d columns for a width of %d: %q", n, width, line)
			}
		}
	}
	if line := liveLine(ts[:1], 12*time.Second, 79); line != "12 s: now 1234, p50 1234, p99 1234, max 1234 ms, 1 "+
		"call" {
		t.Errorf("one target: %q", line)
	}
}

func TestMs(t *testing.T) {
	some := phaseStats{Calls: 1}
	for ns, want := range map[int64]string{
		34_400: "0.034", 999_400: "0.999", 1_234_000: "1.23", 98_760_000: "98.76",
		123_400_000: "123.4", 12_345_600_000: "12346",
	} {
		if got := ms(some, ns); got != want {
			t.Errorf("%d ns: %q, want %q", ns, got, want)
		}
	}
	if got := ms(phaseStats{}, 0); got != "-" {
		t.Errorf("without calls: %q", got)
	}
}

// TestUnfinished: a call that did not come back counts where it shows that the slowest was slower than known, and is
// told.
func TestUnfinished(t *testing.T) {
	tl := newTally("x:1")
	tl.add(recording.Call{Conn: probe.Kept, EndNs: 1e6}, 1e6)
	tl.add(recording.Call{Conn: probe.Kept, EndNs: 5e5, Error: probe.Unfinished}, 5e5)
	if r := tl.row(total); r.Phases[probe.Kept].Calls != 1 || r.Unfinished != 1 || len(r.Errors) != 0 {
		t.Errorf("one that had only begun: %+v", r)
	}
	tl.add(recording.Call{Conn: probe.Kept, EndNs: 9e9, Error: probe.Unfinished}, 9e9)
	if r := tl.row(total); r.Phases[probe.Kept].Calls != 2 || r.Phases[probe.Kept].MaxNs < 9e9 {
		t.Errorf("one that hangs: %+v", r)
	}
}

func TestErrorText(t *testing.T) {
	r := probeRow{Errors: map[string]int{"LOADING": 3, "NOAUTH": 3, "x\n\x1b[2Jy": 9}}
	if got, want := r.errorText(), "errors: 9 x x y; 3 x LOADING; 3 x NOAUTH"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
