package experiment

import (
	"testing"
	"time"
)

func TestParseLimit(t *testing.T) {
	for text, want := range map[string]string{
		"p99<1ms":                         "p99<1ms",
		" p99.9 <= 2 ms, errors < 0.1 % ": "p999<2ms and errors<0.1%",
		"p50<300us and max<20ms":          "p50<300µs and max<20ms",
		"mean<1s AND errors<0.01":         "mean<1s and errors<1%",
		"p90<1ms,p99.99<3ms,p9999<1.5ms":  "p90<1ms and p9999<3ms and p9999<1.5ms",
	} {
		l, err := ParseLimit(text)
		if err != nil || l.String() != want {
			t.Errorf("%q: %q, %v; want %q", text, l, err, want)
		}
	}
	for _, text := range []string{
		"", "p99", "p99<", "p99<1", "p99<0ms", "p99<-1ms", "p98<1ms", "p99>1ms", "errors<0",
		"errors<200%", "errors<x", "p99<1ms and", "p99<1ms or p50<1ms",
		"errors<1ms", "errors<NaN",
	} {
		if l, err := ParseLimit(text); err == nil {
			t.Errorf("%q was taken for %v", text, l)
		}
	}
}

func FuzzParseLimit(f *testing.F) {
	f.Add("p99<1ms and errors<0.1%")
	f.Add("p99.9<=3ms,max<1s")
	f.Fuzz(func(t *testing.T, s string) {
		l, err := ParseLimit(s)
		if err != nil {
			return
		}
		again, err := ParseLimit(l.String())
		if err != nil || again.String() != l.String() {
			t.Errorf("%q is %q, which is %q, %v", s, l, again, err)
		}
	})
}

func TestJudge(t *testing.T) {
	ms := int64(time.Millisecond)
	limit, err := ParseLimit("p99<1ms and errors<1%")
	if err != nil {
		t.Fatal(err)
	}
	fast, slow := Latency{P99Ns: ms / 2}, Latency{P99Ns: 2 * ms}
	for name, c := range map[string]struct {
		run  Run
		want string
	}{
		"fast":        {Run{Requests: 1000, Latency: fast, Service: fast}, Holds},
		"slow server": {Run{Requests: 1000, Latency: slow, Service: slow}, Fails},
		"exactly at the limit": {Run{
			Requests: 1000, Latency: Latency{P99Ns: ms},
			Service: Latency{P99Ns: ms},
		}, Fails},
		"errors": {
			Run{Requests: 1000, Latency: fast, Service: fast, ErrorShare: 0.01},
			Fails,
		},
		"the generator sent late": {
			Run{Requests: 1000, Latency: slow, Service: fast, LateP99Ns: ms},
			Untested,
		},
		"late, but held":                    {Run{Requests: 1000, Latency: fast, Service: fast, LateP99Ns: ms}, Holds},
		"late, and the server slow as well": {Run{Requests: 1000, Latency: slow, Service: slow, LateP99Ns: ms}, Fails},
		"waited for a connection":           {Run{Requests: 1000, Latency: slow, Service: fast}, Fails},
		"the generator had no CPU left": {
			Run{Requests: 1000, Latency: slow, Service: slow, GeneratorLimited: true},
			Untested,
		},
		"had none left, and held": {Run{Requests: 1000, Latency: fast, Service: fast, GeneratorLimited: true}, Holds},
		"fell behind":             {Run{Requests: 1000, Unsent: 100, Latency: fast, Service: fast}, Fails},
		"nothing came back":       {Run{}, Untested},
	} {
		if got, why := limit.judge(c.run); got != c.want || (got == Holds) != (why == "") {
			t.Errorf("%s: %s (%s), want %s", name, got, why, c.want)
		}
	}
}
