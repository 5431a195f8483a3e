package experiment

import (
	"strings"
	"testing"
	"time"
)

func TestParseFailIf(t *testing.T) {
	bounds, err := ParseFailIf(" p99>1ms, errors > 0.1 %,errors>0,p99.9 >= 2ms")
	if err != nil || len(bounds) != 4 || bounds[1].Text != "errors > 0.1 %" {
		t.Fatalf("%+v, %v", bounds, err)
	}
	for _, text := range []string{
		"", "p99", "p99<1ms", "p99>", "p99>1", "p98>1ms", "errors>-1", "errors>200%", "p99>1ms,",
		"p99>1ms and errors>1%",
	} {
		if got, err := ParseFailIf(text); err == nil {
			t.Errorf("%q was taken for %+v", text, got)
		}
	}
}

// TestFailIf: what most loads show; nothing where calls are few, the generator was late, or the load was ended early.
func TestFailIf(t *testing.T) {
	const ms = int64(time.Millisecond)
	load := func(p99, late int64, calls int64, errors float64) Run {
		return Run{
			Requests: calls, ErrorShare: errors, LateP99Ns: late, Latency: Latency{P99Ns: p99},
			Service: Latency{P99Ns: p99 - late},
		}
	}
	const many = 100_000
	for name, c := range map[string]struct {
		bound       string
		interrupted bool
		runs        []Run
		want, why   string
	}{
		"at the bound":          {"p99>1ms", false, []Run{load(ms, 0, many, 0)}, Holds, ""},
		"above it":              {"p99>1ms", false, []Run{load(2*ms, 0, many, 0)}, Fails, "p99 2 ms"},
		"few calls":             {"p99>1ms", false, []Run{load(2*ms, 0, 100, 0)}, Untested, "p99 takes 1 000"},
		"late generator":        {"p99>1ms", false, []Run{load(2*ms, ms+ms/2, many, 0)}, Untested, "late"},
		"ended early":           {"p99>1ms", true, []Run{load(ms, 0, many, 0)}, Untested, "ended early"},
		"ended early, above it": {"p99>1ms", true, []Run{load(2*ms, 0, many, 0)}, Fails, "p99"},
		"errors at the bound":   {"errors>1%", false, []Run{load(ms, 0, many, 0.01)}, Holds, ""},
		"errors above it":       {"errors>1%", false, []Run{load(ms, 0, 50, 0.02)}, Fails, "errors 2 %"},
		"any error":             {"errors>0", false, []Run{load(ms, 0, many, 1e-5)}, Fails, "errors 0.001 %"},
		"no error":              {"errors>0%", false, []Run{load(ms, 0, many, 0)}, Holds, ""},
		"most loads": {
			"p99>1ms", false,
			[]Run{load(2*ms, 0, many, 0), load(ms, 0, many, 0), load(3*ms, 0, many, 0)},
			Fails, "in 2 of 3 loads",
		},
		"half of them": {
			"p99>1ms", false, []Run{load(2*ms, 0, many, 0), load(ms, 0, many, 0)}, Untested, "in 1 of 2 loads",
		},
	} {
		bounds, err := ParseFailIf(c.bound)
		if err != nil {
			t.Fatal(err)
		}
		got := bounds[0].Check(c.interrupted, c.runs...)
		if got.Outcome != c.want || !strings.Contains(got.Why, c.why) {
			t.Errorf("%s: %+v, want %s, %s", name, got, c.want, c.why)
		}
	}
	for want, outcomes := range map[string][]string{
		Holds: {Holds, Holds}, Fails: {Untested, Fails, Holds}, Untested: {Holds, Untested},
	} {
		var checks []Check
		for _, o := range outcomes {
			checks = append(checks, Check{Outcome: o})
		}
		if got := Outcome(checks); got != want {
			t.Errorf("%v: %s", outcomes, got)
		}
	}
}
