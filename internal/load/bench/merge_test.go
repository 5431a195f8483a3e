package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"pgregory.net/rapid"

	"slowpath/internal/load/bottleneck"
	"slowpath/internal/recording"
)

var someTime = time.Date(2026, 11, 21, 18, 0, 0, 0, time.UTC)

// part is a result of whole seconds with so many calls of these latencies in each.
func part(t require, start time.Duration, seconds int, seed uint64, latencies ...int64) *Result {
	h := hdrhistogram.New(1, int64(time.Hour), 3)
	r := &Result{
		Schema: Schema, Version: "v", Target: Target{Address: "a:1", Server: "redis 7.0.15"},
		Start: someTime.Add(start), Seconds: float64(seconds),
		Errors: map[string]int64{"ERR": 2}, Settings: Settings{
			Loop: Closed, Connections: 10, Pipeline: 1,
			PipelineMode: "window", Threads: 1, Seed: seed, Protocol: 2,
		},
		LimitedBy: bottleneck.ByServerCPU, Bottleneck: bottleneck.Verdict{
			By:       bottleneck.ByServerCPU,
			Sentence: "server main thread at 99 %", Certainty: 0.9,
		},
	}
	for s := range seconds {
		for _, l := range latencies {
			if err := h.RecordValue(l); err != nil {
				t.Fatal(err)
			}
		}
		r.Series = append(r.Series, Second{
			Second: s, Seconds: 1, Requests: int64(len(latencies)), InFlight: 5,
			P99Ns: int64(seed),
		})
	}
	r.Requests = h.TotalCount()
	r.RequestsPerSecond = float64(len(latencies))
	l, err := latencyOf(h)
	if err != nil {
		t.Fatal(err)
	}
	r.Latency, r.Service = l, l
	r.Ops = []Op{{Op: "GET", Ratio: 1, Requests: r.Requests, Latency: l, Service: l}}
	return r
}

type require interface{ Fatal(args ...any) }

func named(results ...*Result) (out []Named) {
	for i, r := range results {
		out = append(out, Named{Name: fmt.Sprintf("%c.json", 'a'+i), Result: r})
	}
	return out
}

func notesOf(t *testing.T, r *Result) string {
	t.Helper()
	return strings.Join(r.Notes, "\n")
}

// TestMergeReplays: what was sent of the logs is added up, and so is what was left out.
func TestMergeReplays(t *testing.T) {
	a, b, none := part(t, 0, 4, 1, 10), part(t, 0, 4, 2, 10), part(t, 0, 4, 3, 10)
	a.Replay = &Replay{
		Requests: 100, Sent: 90, Clients: 3, LengthNs: 4e9, Speed: 2, Notes: []string{"x", "y"},
		Skipped: []Skip{{"FLUSHALL", "harm", 2}, {"BLPOP", "blocks", 1}},
	}
	b.Replay = &Replay{
		Requests: 50, Sent: 50, Clients: 2, LengthNs: 5e9, Speed: 2, Notes: []string{"y", "z"},
		Skipped: []Skip{{"BLPOP", "blocks", 4}, {"MONITOR", "state", 2}},
	}
	want := &Replay{
		Requests: 150, Sent: 140, Clients: 5, LengthNs: 5e9, Speed: 2, Notes: []string{"x", "y", "z"},
		Skipped: []Skip{{"BLPOP", "blocks", 5}, {"FLUSHALL", "harm", 2}, {"MONITOR", "state", 2}},
	}
	r, err := Merge(named(a, b))
	if err != nil || !reflect.DeepEqual(r.Replay, want) || strings.Contains(notesOf(t, r), "replay speed") {
		t.Errorf("%v: %+v, want %+v; %s", err, r.Replay, want, notesOf(t, r))
	}
	if r, err = Merge(named(a, none)); err != nil || r.Replay == nil || r.Replay.Sent != 90 ||
		!strings.Contains(notesOf(t, r), "replay speed is 2 in a.json and none in b.json") {
		t.Errorf("%v: %+v; %s", err, r, notesOf(t, r))
	}
	if r, err = Merge(named(none, part(t, 0, 4, 4, 10))); err != nil || r.Replay != nil {
		t.Errorf("%v: %+v", err, r)
	}
}

func TestMerge(t *testing.T) {
	for _, c := range []struct {
		name    string
		parts   []Named
		rate    float64
		seconds float64
		notes   []string
		not     []string
	}{
		{
			name: "together", parts: named(part(t, 0, 4, 1, 10, 20, 30), part(t, 3*time.Millisecond, 4, 2, 40, 50)),
			rate: 5, seconds: 4.003,
			notes: []string{"Added up from 2 results"}, not: []string{
				"in common", "differ", "--start-at",
				"Limited by the generator",
			},
		},
		{
			name: "half a second apart", parts: named(part(t, 0, 20, 1, 10), part(t, 500*time.Millisecond, 20, 2, 10)),
			rate: 2, seconds: 20.5,
			notes: []string{"began within 500 ms of each other"},
		},
		{
			name: "half of the time", parts: named(part(t, 0, 4, 1, 10, 20), part(t, 2*time.Second, 4, 2, 10)), rate: 3,
			seconds: 6,
			notes:   []string{"have 2 s of 4 s in common"},
		},
		{
			name: "in the wrong order", parts: named(part(t, 2*time.Second, 4, 1, 10, 20), part(t, 0, 4, 2, 10)),
			rate:    3,
			seconds: 6,
		},
		{
			name: "never", parts: named(part(t, 0, 2, 1, 10), part(t, 2*time.Second, 2, 2, 10)), rate: 0, seconds: 4,
			notes: []string{"no time in common", "a.json 18:00:00.000 to 18:00:02.000"},
		},
		{
			name: "same seed", parts: named(part(t, 0, 2, 7, 10), part(t, 0, 2, 7, 10, 20)), rate: 3, seconds: 2,
			notes: []string{"--seed 7"},
		},
		{name: "other settings", parts: named(part(t, 0, 2, 1, 10), change(part(t, 0, 2, 2, 10), func(r *Result) {
			r.Settings.Pipeline, r.Target.Address = 16, "b:2"
			r.Settings.Workload = map[string]any{"command": "set"}
		})), rate: 2, seconds: 2, notes: []string{
			"pipeline is 1 in a.json and 16 in b.json",
			"target is a:1 in a.json and b:2 in b.json", "workload is",
		}},
		{name: "a generator's limit", parts: named(part(t, 0, 2, 1, 10), change(part(t, 0, 2, 2, 10), func(r *Result) {
			r.LimitedBy = bottleneck.ByGeneratorCPU
			r.Bottleneck = bottleneck.Verdict{
				By: bottleneck.ByGeneratorCPU, Sentence: "the generator is the limit",
				GeneratorLimited: true, Certainty: 0.1,
			}
		})), rate: 2, seconds: 2, notes: []string{"Limited by the generator or its host: b.json. The sum is less"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Merge(c.parts)
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(r.RequestsPerSecond-c.rate) > 0.01 || math.Abs(r.Seconds-c.seconds) > 0.01 {
				t.Errorf("%v per second in %v s, want %v in %v", r.RequestsPerSecond, r.Seconds, c.rate, c.seconds)
			}
			var requests, series int64
			for _, p := range c.parts {
				requests += p.Result.Requests
			}
			for _, s := range r.Series {
				series += s.Requests
			}
			if r.Requests != requests || series != requests || r.Latency.Calls != requests ||
				r.Ops[0].Requests != requests || r.Errors["ERR"] != 4 || r.Settings.Connections != 20 ||
				len(r.Parts) != 2 {
				t.Errorf("%d calls of %d, %d in the series, %+v", r.Requests, requests, series, r)
			}
			for _, n := range c.notes {
				if !strings.Contains(notesOf(t, r), n) {
					t.Errorf("no %q in: %s", n, notesOf(t, r))
				}
			}
			for _, n := range c.not {
				if strings.Contains(notesOf(t, r), n) {
					t.Errorf("%q in: %s", n, notesOf(t, r))
				}
			}
			if generator := strings.Contains(c.name, "generator"); r.Bottleneck.GeneratorLimited != generator ||
				r.LimitedBy == "" {
				t.Errorf("limited by %s, %+v", r.LimitedBy, r.Bottleneck)
			}
		})
	}
}

func change(r *Result, f func(*Result)) *Result {
	f(r)
	return r
}

// TestMergeIsExact: the percentiles of the sum are those of all calls in one histogram, however the calls are dealt
// out.
func TestMergeIsExact(t *testing.T) {
	most := 5
	if testing.Short() {
		most = 2
	}
	rapid.Check(t, func(t *rapid.T) {
		all := hdrhistogram.New(1, int64(time.Hour), 3)
		var parts []Named
		for i := range rapid.IntRange(2, most).Draw(t, "parts") {
			latencies := rapid.SliceOfN(rapid.Int64Range(1, int64(time.Minute)), 1, 50).Draw(t, "latencies")
			for _, l := range latencies {
				_ = all.RecordValue(l) // in range
			}
			parts = append(parts, Named{Name: fmt.Sprint(i), Result: part(t, 0, 1, uint64(i), latencies...)})
		}
		r, err := Merge(parts)
		if errors.Is(err, ErrSame) {
			return // two were drawn alike
		}
		if err != nil {
			t.Fatal(err)
		}
		want, err := latencyOf(all)
		if err != nil {
			t.Fatal(err)
		}
		if r.Latency != want {
			t.Fatalf("got %+v, want %+v", r.Latency, want)
		}
	})
}

func TestMergeRefuses(t *testing.T) {
	other := part(t, 0, 2, 2, 10)
	h := hdrhistogram.New(1, 1000, 2)
	_ = h.RecordValue(10) // in range
	l, err := latencyOf(h)
	if err != nil {
		t.Fatal(err)
	}
	other.Latency = l
	broken := part(t, 0, 2, 3, 10)
	broken.Service.HDR = "!"
	for _, c := range []struct {
		name  string
		parts []Named
		want  error
		text  string
	}{
		{"one", named(part(t, 0, 2, 1, 10)), ErrFew, ""},
		{"the same", named(part(t, 0, 2, 1, 10), part(t, 0, 2, 1, 10)), ErrSame, "a.json and b.json"},
		{"other scale", named(part(t, 0, 2, 1, 10), other), ErrScale, "b.json"},
		{"broken", named(part(t, 0, 2, 1, 10), broken), nil, "b.json: the histogram"},
	} {
		if _, err := Merge(c.parts); err == nil || c.want != nil && !errors.Is(err, c.want) ||
			!strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestRecorded: a result comes out of a recording, and out of a document, as it went in.
func TestRecorded(t *testing.T) {
	r := part(t, 0, 3, 1, 10, 20)
	rec := recording.New()
	if _, err := Recorded(rec); !errors.Is(err, ErrNotResult) {
		t.Errorf("of an empty recording: %v", err)
	}
	if err := r.Record(rec, 1); err != nil {
		t.Fatal(err)
	}
	got, err := Recorded(rec)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := json.Marshal(r) // it was encoded before
	b, _ := json.Marshal(got)
	if !bytes.Equal(a, b) {
		t.Errorf("got %s, want %s", b, a)
	}
}

func TestReadRefuses(t *testing.T) {
	for _, text := range []string{
		"", "[]", "{}", `{"schema":"slowpath.diagnosis/v1"}`,
		`{"schema":"slowpath.bench/v1","seconds":-1}`, "\x00",
		`{"schema":"slowpath.bench/v1","start":"2026-11-21T18:00:00Z","series":[{"second":-5}]}`,
		`{"schema":"slowpath.bench/v1","start":"2026-11-21T18:00:00Z","requests":"x"}`,
	} {
		if _, err := Read(strings.NewReader(text)); !errors.Is(err, ErrNotResult) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// FuzzRead: whatever a file holds, it is read and added up, or refused.
func FuzzRead(f *testing.F) {
	good, err := json.Marshal(part(f, 0, 2, 1, 10, 20))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"schema":"slowpath.bench/v1"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Read(bytes.NewReader(b))
		if err != nil {
			return
		}
		if sum, err := Merge([]Named{{"a", r}, {"b", part(t, 0, 1, 9, 5)}}); err == nil && sum.RequestsPerSecond < 0 {
			t.Errorf("rate %v", sum.RequestsPerSecond)
		}
	})
}

// TestMergeLosesNoCount: what each part counted is in the sum, whatever it is.
func TestMergeLosesNoCount(t *testing.T) {
	counted := func(r *Result) {
		r.Misses, r.TimedOut, r.Delivered, r.Errors = 1, 1, 1, map[string]int64{"ERR": 1}
		r.Unanswered = Unanswered{InFlight: 1, Unsent: 1, Failed: 1}
		r.Connections = Connections{Lost: 1, Reconnected: 1, Retired: 1}
		r.Bytes, r.Mismatches = Bytes{Out: 1, In: 1}, map[string]int64{"wrong": 1}
		r.Routing = &Routing{
			ReadFrom: "any", Nodes: map[string]int64{"a:1": 1},
			Retried: map[string]int64{"MOVED": 1},
		}
		for i := range r.Series {
			r.Series[i].Retried = 1
		}
	}
	sum, err := Merge(named(change(part(t, 0, 1, 1, 10), counted), change(part(t, 0, 1, 2, 20), counted)))
	if err != nil {
		t.Fatal(err)
	}
	want := &Routing{ReadFrom: "any", Nodes: map[string]int64{"a:1": 2}, Retried: map[string]int64{"MOVED": 2}}
	two := map[string]int64{
		"misses": sum.Misses, "timed out": sum.TimedOut, "delivered": sum.Delivered,
		"errors":    sum.Errors["ERR"],
		"in flight": sum.Unanswered.InFlight, "unsent": sum.Unanswered.Unsent, "failed": sum.Unanswered.Failed,
		"lost":        sum.Connections.Lost,
		"reconnected": sum.Connections.Reconnected, "retired": sum.Connections.Retired, "out": sum.Bytes.Out,
		"in":         sum.Bytes.In,
		"mismatches": sum.Mismatches["wrong"], "sent again": sum.Series[0].Retried,
	}
	for what, n := range two {
		if n != 2 {
			t.Errorf("%s: %d, want 2", what, n)
		}
	}
	if !reflect.DeepEqual(sum.Routing, want) {
		t.Errorf("%+v, want %+v", sum.Routing, want)
	}
}
