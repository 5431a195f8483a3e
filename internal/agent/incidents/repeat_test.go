package incidents_test

import (
	"strings"
	"testing"
	"time"

	"slowpath/internal/agent/incidents"
)

// TestRepeats: an incident says which time it is that the same nodes have the same trouble, and in which rhythm.
func TestRepeats(t *testing.T) {
	s := open(t, t.TempDir(), incidents.Limits{MaxAge: 1 << 62})
	judge := func(start time.Time, diagnosis string) incidents.Incident {
		t.Helper()
		in := begin(t, s, start)
		for range 2 { // a first verdict, and the last one
			if err := s.Finish(in.ID, []byte(diagnosis)); err != nil {
				t.Fatal(err)
			}
		}
		in, _ = s.Get(in.ID)
		return in
	}
	for n, want := range []string{
		"", "The 2nd time since Nov 24 03:12 UTC.", "The 3rd time since Nov 24 03:12 UTC.",
		"The 4th time since Nov 24 03:12 UTC, about every 1h.", "The 5th time since Nov 24 03:12 UTC, about every 1h.",
	} {
		hour := time.Duration(n) * time.Hour
		in := judge(at.Add(hour+time.Duration(n%2)*time.Minute), judged)
		if got := in.Repeat; want == "" && got != nil || want != "" && (got.Nth != n+1 || got.String() != want) {
			t.Errorf("%d: got %v, want %q", n, got, want)
		}
		if in.Summary != strings.TrimSpace("Too little CPU. "+want) {
			t.Errorf("%d: the summary is %q", n, in.Summary)
		}
		for _, other := range []string{
			strings.ReplaceAll(judged, "10.0.0.5", "10.0.0.6"),
			strings.Replace(judged, "server-cfs-throttled", "slow-command", 1),
		} {
			if one := judge(at.Add(hour+30*time.Minute), other); n == 0 && one.Repeat != nil {
				t.Errorf("other nodes, or another cause: %v", one.Repeat)
			}
		}
	}
	if in := judge(at.Add(9*time.Hour), judged); in.Repeat.Nth != 6 || in.Repeat.EverySeconds != 0 {
		t.Errorf("out of its rhythm: %+v", in.Repeat)
	}
}
