package grade

import (
	"bytes"
	"strings"
	"testing"

	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/lab/scenario"
	"slowpath/internal/recording"
)

const (
	node = "127.0.0.1:6379"
	ms   = int64(1e6)
	base = ms / 2
)

// run is a graded recording of calls of half a millisecond, which is the baseline, and of slow ones: of each its time
// above that, and how long of it the server was throttled.
func run(t *testing.T, id, truth string, slow ...[2]int64) Result {
	t.Helper()
	rec := recording.New()
	rec.SetMeta(recording.MetaTarget, node)
	call := func(from, ns int64, segs ...recording.Segment) {
		rec.Call(recording.Call{
			Source: recording.SourceProbe, Conn: "kept", Op: "PING", Node: node, IntendedNs: from,
			StartNs: from, EndNs: from + ns,
		}, segs...)
	}
	for i := range int64(50) {
		call(i*10*ms, base)
	}
	for i, s := range slow {
		from := 1000*ms + int64(i)*1000*ms
		call(from, s[0]+base, recording.Segment{
			Actor: recording.Server, State: recording.Throttled, FromNs: from,
			ToNs: from + s[1],
		})
	}
	rec.Index()
	r := Result{Scenario: id, Truth: truth}
	r.judge(verdict.Diagnose(rec, "test"))
	return r
}

func TestUnexplainedShareOfTheExcess(t *testing.T) {
	for _, tt := range []struct {
		name            string
		slow            [][2]int64
		ns, unexplained int64
	}{
		{"all of the excess seen", [][2]int64{{100 * ms, 100 * ms}}, 100 * ms, 0},
		{"half of it", [][2]int64{{100 * ms, 50 * ms}}, 100 * ms, 50 * ms},
		{"nothing seen: the baseline is no excess", [][2]int64{{100 * ms, 0}}, 100 * ms, 100 * ms},
		{"several calls add up", [][2]int64{{100 * ms, 50 * ms}, {50 * ms, 50 * ms}}, 150 * ms, 50 * ms},
		{"no slow call", nil, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := run(t, "server-cfs-throttled", "server-cfs-throttled", tt.slow...).Excess
			if e.Ns != tt.ns || e.UnexplainedNs != tt.unexplained {
				t.Errorf("%d of %d ns unexplained, want %d of %d", e.UnexplainedNs, e.Ns, tt.unexplained, tt.ns)
			}
		})
	}
}

func TestUnexplainedOfAGrading(t *testing.T) {
	s := Summarise([]Result{
		run(t, "half", "x", [2]int64{100 * ms, 50 * ms}),
		run(t, "seen", "x", [2]int64{300 * ms, 300 * ms}),
		run(t, "tenth", "x", [2]int64{100 * ms, 90 * ms}),
		run(t, "healthy-idle", scenario.HealthyCause, [2]int64{100 * ms, 0}),
		run(t, "nothing slow", "x"),
		{Scenario: "skipped", Truth: "x", Skipped: "no root"},
	})
	want := Unexplained{Runs: 3, Share: 60. / 500, Median: 0.1, MedianOf: "tenth", Worst: 0.5, WorstOf: "half"}
	if s.Unexplained != want {
		t.Errorf("%+v, want %+v", s.Unexplained, want)
	}
	var out bytes.Buffer
	s.Table(&out)
	for _, line := range []string{
		"half                                   0.10 s       50.0 %",
		"unexplained: 12.0 % of the lost time of 3 runs together; median 10.0 % (tenth), worst 50.0 % (half)",
	} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("no line %q in:\n%s", line, out.String())
		}
	}
	if strings.Contains(out.String(), "healthy-idle ") {
		t.Errorf("a healthy load has a share:\n%s", out.String())
	}
}

func TestNoExcessNoShare(t *testing.T) {
	s := Summarise([]Result{run(t, "healthy-idle", scenario.HealthyCause)})
	var out bytes.Buffer
	s.Table(&out)
	if s.Unexplained != (Unexplained{}) || strings.Contains(out.String(), "unexplained") {
		t.Errorf("%+v:\n%s", s.Unexplained, out.String())
	}
}
