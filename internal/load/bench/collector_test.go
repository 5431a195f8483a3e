package bench

import (
	"bytes"
	"encoding/csv"
	"slices"
	"strings"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"slowpath/internal/load/engine"
)

// tally is what a worker counted in a second: n calls of a millisecond.
func tally(worker, second int, n int64) *engine.Tally {
	t := engine.NewTally(1, true)
	t.Worker, t.Second, t.EndNs = worker, second, int64(second+1)*1e9
	t.Ops[0].Calls = n
	_ = t.Ops[0].Service.RecordValues(1e6, n)
	_ = t.Ops[0].Response.RecordValues(2e6, n)
	return t
}

// TestCollector: seconds come in order, each once and complete, in whatever order the workers report them.
func TestCollector(t *testing.T) {
	var seen []Second
	c := newCollector(1, true, 2)
	c.onSecond = func(s Second, t *engine.Tally) {
		if t.Calls() != s.Requests+t.Drained {
			seen = nil
		}
		seen = append(seen, s)
	}
	requests := func() (n []int64) {
		for _, s := range seen {
			n = append(n, s.Requests)
		}
		return n
	}
	c.add(tally(0, 0, 10))
	c.add(tally(0, 1, 20))
	if len(seen) != 0 {
		t.Fatal("a second that one worker has not reported")
	}
	c.add(tally(1, 0, 1))
	if !slices.Equal(requests(), []int64{11}) {
		t.Fatalf("after the first second: %v", requests())
	}
	c.add(tally(1, 3, 4)) // it could not run for two seconds
	last := tally(0, 4, 5)
	last.Last, last.EndNs, last.Drained = true, 4_250_000_000, 2
	c.add(last)
	if !slices.Equal(requests(), []int64{11, 20, 0, 4}) {
		t.Fatalf("with one worker at its end: %v", requests())
	}
	end := tally(1, 4, 6)
	end.Last, end.EndNs = true, 4_500_000_000
	c.add(end)
	if !slices.Equal(requests(), []int64{11, 20, 0, 4, 9}) || seen[4].Seconds != 0.5 || seen[3].Seconds != 1 {
		t.Fatalf("at the end: %v, %+v", requests(), seen[len(seen)-1])
	}
	if c.total.Calls() != 46 || c.total.Drained != 2 || c.total.Ops[0].Response.TotalCount() != 46 {
		t.Errorf("in all: %d calls, %d late", c.total.Calls(), c.total.Drained)
	}
	if s := seen[0]; s.P50Ns < 1_990_000 || s.P50Ns > 2_010_000 || s.ServiceP50Ns < 990_000 ||
		s.ServiceP50Ns > 1_010_000 {
		t.Errorf("%+v", s)
	}
}

// TestHistogramLog: the log's own reader finds every call again, under its op's tag and in its second.
func TestHistogramLog(t *testing.T) {
	const start = 1_700_000_000_123_000_000
	var b bytes.Buffer
	l := NewHistogramLog(&b, []string{"CLIENT LIST,x"}, start)
	for second, n := range []int64{10, 0, 30} {
		l.Second(Second{Second: second, Seconds: 1}, tally(0, second, n))
	}
	if err := l.Err(); err != nil {
		t.Fatal(err)
	}
	type found struct {
		tag       string
		ms, calls int64
	}
	var got []found
	for r := hdrhistogram.NewHistogramLogReader(&b); ; {
		h, err := r.NextIntervalHistogram()
		if err != nil {
			t.Fatal(err)
		}
		if h == nil {
			break
		}
		want := int64(2e6)
		if strings.HasSuffix(h.Tag(), FromSend) {
			want = 1e6
		}
		if !h.ValuesAreEquivalent(h.Max(), want) || h.EndTimeMs()-h.StartTimeMs() != 1000 {
			t.Errorf("%s: max %d, from %d to %d ms", h.Tag(), h.Max(), h.StartTimeMs(), h.EndTimeMs())
		}
		got = append(got, found{h.Tag(), h.StartTimeMs(), h.TotalCount()})
	}
	want := []found{
		{"CLIENT_LIST_x", start / 1e6, 10},
		{"CLIENT_LIST_x:send", start / 1e6, 10},
		{"CLIENT_LIST_x", start/1e6 + 2000, 30},
		{"CLIENT_LIST_x:send", start/1e6 + 2000, 30},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

func TestCSV(t *testing.T) {
	var b bytes.Buffer
	c := NewCSV(&b)
	c.Second(Second{Second: 7, Seconds: 0.25, Requests: 12, WorkersRunQueueNs: 99})
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil || c.Err() != nil || len(rows) != 2 {
		t.Fatalf("%v, %v: %v", err, c.Err(), rows)
	}
	cell := func(name string) string { return rows[1][slices.Index(rows[0], name)] }
	if cell("second") != "7" || cell("seconds") != "0.25" || cell("requests") != "12" ||
		cell("workers_run_queue_ns") != "99" || cell("p99_ns") != "0" {
		t.Errorf("%v", rows)
	}
}
