package trace

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"slowpath/internal/recording"
)

const ms = int64(time.Millisecond)

var begin = time.Date(2026, 10, 5, 14, 2, 11, 0, time.UTC).UnixNano()

// waited is a call that waited for KEYS from begin+at, and then ran for 1 ms.
func waited(op string, at, ns int64, client int) Call {
	end := begin + at + ns
	return newCall(recording.Call{
		Source: recording.SourceTap, Op: op, Conn: fmt.Sprintf("127.0.0.1:%d", client),
		Client: fmt.Sprintf("checkout[%d]", client%7), Node: "127.0.0.1:6379",
		IntendedNs: begin + at, StartNs: begin + at, EndNs: end, Side: "both", Slot: -1,
	},
		[]recording.Segment{
			{
				Actor: recording.Server, State: recording.Busy, FromNs: begin + at, ToNs: end - ms,
				Culprit: "KEYS from 127.0.0.1:48440 (redis-cli[22907])",
			},
			{Actor: recording.Server, State: recording.Exec, FromNs: end - ms, ToNs: end},
		})
}

func TestFilter(t *testing.T) {
	c := waited("GET", 0, 10*ms, 40001)
	c.Op, c.Process, c.server = "CLUSTER SHARDS", "checkout[4711]", "a-name-longer-t[22907]"
	for _, k := range []struct {
		filter Filter
		takes  bool
	}{
		{Filter{}, true},
		{Filter{Commands: []string{"GET", "cluster"}}, true},
		{Filter{Commands: []string{"cluster shards"}}, true},
		{Filter{Commands: []string{"CLUST"}}, false},
		{Filter{Clients: []string{"Checkout"}}, true},
		{Filter{Clients: []string{"127.0.0.1:40001"}}, true},
		{Filter{Clients: []string{"cart", ":4000"}}, true},
		{Filter{Clients: []string{"cart"}}, false},
		{Filter{Nodes: []string{":6379"}}, true},
		{Filter{Nodes: []string{"127.0.0.1"}}, true},
		{Filter{Nodes: []string{"127.0.0.1:6379"}}, true},
		{Filter{Nodes: []string{"127.0.0.1:637", ":63"}}, false},
		{Filter{Comm: "checkout"}, true},
		{Filter{Comm: "check"}, false},
		{Filter{Comm: "checkout", PID: 4711}, true},
		{Filter{Comm: "checkout", PID: 471}, false},
		{Filter{PID: 22907}, true},
		{Filter{Comm: "a-name-longer-than-15"}, true},
		{Filter{Min: 10 * time.Millisecond, Max: 10 * time.Millisecond}, true},
		{Filter{Min: 11 * time.Millisecond}, false},
		{Filter{Max: 9 * time.Millisecond}, false},
		{Filter{Conditions: spent(t, "server.busy>5ms")}, true},
		{Filter{Conditions: spent(t, "server.busy>=9ms", "exec")}, true},
		{Filter{Conditions: spent(t, "server.busy>9.1ms")}, false},
		{Filter{Conditions: spent(t, "server > 10ms")}, true},
		{Filter{Conditions: spent(t, "server.busy", "network")}, false},
	} {
		if got := k.filter.matches(c); got != k.takes {
			t.Errorf("%+v: %v", k.filter, got)
		}
	}
	if !(Filter{}).matchesAll() || (Filter{Max: 1}).matchesAll() {
		t.Error("Any")
	}
}

func spent(t *testing.T, texts ...string) (list []Condition) {
	for _, text := range texts {
		s, err := ParseCondition(text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, s)
	}
	return list
}

func TestParseCondition(t *testing.T) {
	for text, want := range map[string]Condition{
		"server.busy>5ms":     {"server", "busy", 5 * time.Millisecond},
		" Server.Busy >= 5ms": {"server", "busy", 5 * time.Millisecond},
		"network":             {Actor: "network"},
		"unexplained>1s":      {State: "unexplained", AtLeast: time.Second},
	} {
		if got, err := ParseCondition(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", ">5ms", "server.", ".busy", "server.lazy", "cook.busy", "server.busy>5",
		"server.busy>-5ms", "server.busy>", "server.busy<5ms",
	} {
		if got, err := ParseCondition(text); !errors.Is(err, ErrCondition) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

func FuzzParseCondition(f *testing.F) {
	f.Add("server.busy>=5ms")
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := ParseCondition(text); err == nil && (s.AtLeast < 0 || s.Actor == "" && s.State == "") {
			t.Errorf("%q: %+v", text, s)
		}
	})
}

// TestSample: as many calls as the rate says are shown at once, and that many per second.
func TestSample(t *testing.T) {
	shown := 0
	w := NewWatch(Options{Slow: 5 * time.Millisecond, SamplePerSecond: 100, Show: func(Call) { shown++ }})
	calls := func(at int64, n int) {
		for range n {
			w.Call(recording.Call{
				Source: recording.SourceTap, Op: "GET", IntendedNs: begin + at, EndNs: begin + at + ms,
			})
		}
	}
	for i, k := range []struct {
		at         int64 // in ms
		made, want int   // calls so far
	}{
		{0, 40, 40},
		{0, 60, 100},
		{0, 50, 100},
		{500, 70, 150},
		{100, 5, 150}, // an end of a connection may report late
		{10_000, 100, 250},
	} {
		if calls(k.at*ms, k.made); shown != k.want {
			t.Errorf("step %d: %d shown, want %d", i, shown, k.want)
		}
	}
	for name, value := range map[string]float64{"tap.calls.server": 420, "tap.slow": 20, "tap.sampled": 100} {
		w.Sample(recording.Sample{
			Source: recording.SourceTap, Subject: recording.SubjectSelf, Name: name, Value: value,
		})
	}
	if s := w.Summary(); s.Reported != 0.25 || s.Fast != 325 {
		t.Errorf("%+v", s)
	}
}

// TestSlots: what overlaps lies in different places, and there are no more places than calls in flight at once.
func TestLanes(t *testing.T) {
	var s lanes
	for i, k := range []struct {
		from, to int64
		want     int
	}{{0, 10, 0}, {1, 3, 1}, {2, 20, 2}, {3, 5, 1}, {10, 11, 0}, {10, 12, 1}, {10, 13, 3}} {
		if got := s.take(k.from, k.to); got != k.want {
			t.Errorf("span %d: place %d, want %d", i, got, k.want)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var places lanes
		last := map[int]int64{}
		var ends []int64
		most, at := 0, int64(0)
		for range 100 {
			at += r.Int64N(5)
			end := at + r.Int64N(20)
			n := places.take(at, end)
			if last[n] > at {
				t.Fatalf("place %d is taken until %d, and again from %d", n, last[n], at)
			}
			last[n] = end
			ends = slices.DeleteFunc(ends, func(e int64) bool { return e <= at })
			ends = append(ends, end)
			most = max(most, len(ends))
		}
		if len(places.freeFrom) > most {
			t.Fatalf("%d places for %d at once", len(places.freeFrom), most)
		}
	}
}

func TestGroups(t *testing.T) {
	var g Groups
	g.Add(waited("GET", 0, 100*ms, 1))
	g.Add(waited("SET", 2*ms, 100*ms, 2))
	g.Add(waited("GET", 3*ms, 110*ms, 3))
	g.Add(waited("GET", 105*ms, 100*ms, 2)) // the next KEYS
	if due := g.Due(begin + 300*ms); len(due) != 0 {
		t.Errorf("too early: %+v", due)
	}
	all := g.Due(begin + 10_000*ms)
	if len(all) != 2 || len(g.All()) != 0 {
		t.Fatalf("%d groups: %+v", len(all), all)
	}
	if a := all[0]; a.Worst.Client != "127.0.0.1:3" || a.Others != 2 || a.LeastNs != 100*ms ||
		a.ByCommand["GET"] != 2 || a.ByCommand["SET"] != 1 {
		t.Errorf("%+v", a)
	}
	if b := all[1]; b.Others != 0 || b.Worst.Client != "127.0.0.1:2" {
		t.Errorf("%+v", b)
	}
	g.Each = true
	g.Add(waited("GET", 0, 100*ms, 1))
	g.Add(waited("GET", 0, 100*ms, 2))
	if n := len(g.Due(begin)); n != 2 {
		t.Errorf("%d groups with Each", n)
	}
}

// TestGroupsOwn: calls that spent their time on their own execution are not grouped.
func TestGroupsOwn(t *testing.T) {
	exec := func(client int) Call {
		c := waited("KEYS", 0, 50*ms, client)
		c.Segments = []Segment{{Actor: recording.Server, State: recording.Exec, ToNs: 50 * ms}}
		return c
	}
	var g Groups
	g.Add(exec(1))
	g.Add(exec(2))
	if n := len(g.All()); n != 2 {
		t.Errorf("%d groups", n)
	}
}

// TestWatch follows rows through the filter, the sample and the summary.
func TestWatch(t *testing.T) {
	var shown []string
	kept := recording.New()
	w := NewWatch(Options{
		Filter: Filter{Commands: []string{"GET"}}, Slow: 5 * time.Millisecond, SamplePerSecond: 1,
		Tee:  kept,
		Show: func(c Call) { shown = append(shown, fmt.Sprintf("%s %d", c.Op, c.Ns/ms)) },
	})
	row := func(op string, at, ns int64, segs ...recording.Segment) {
		w.Call(recording.Call{Source: recording.SourceTap, Op: op, IntendedNs: begin + at, EndNs: begin + at + ns},
			segs...)
	}
	row("GET", 0, 20*ms, recording.Segment{
		Actor: "server", State: "busy", FromNs: begin, ToNs: begin + 20*ms,
		Culprit: "KEYS from 10.0.0.7:48440 (redis-cli[22907])",
	})
	row("GET", 0, 30*ms, recording.Segment{
		Actor: "server", State: "busy", FromNs: begin, ToNs: begin + 30*ms,
		Culprit: "KEYS from 10.0.0.7:48441 (redis-cli[22908])",
	})
	row("SET", 0, 40*ms)
	row("GET", 0, 10*ms, recording.Segment{ // it does not wait for itself
		Actor: "server", State: "exec", FromNs: begin, ToNs: begin + 10*ms, Culprit: "GET from 10.0.0.7:48442",
	})
	row("GET", 100*ms, ms)
	row("GET", 150*ms, 2*ms) // too early for the sample
	row("GET", 1250*ms, 3*ms)
	w.Call(recording.Call{Source: recording.SourceProbe, Op: "GET", IntendedNs: begin, EndNs: begin + 50*ms})
	for _, side := range []string{"server", "client"} {
		h := hdrhistogram.New(1, int64(time.Minute), 2)
		_ = h.RecordValues(100_000, 98)
		_ = h.RecordValues(20*ms, 2)
		hdr, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
		if err != nil {
			t.Fatal(err)
		}
		w.Histogram(recording.Histogram{Second: 1, Source: recording.SourceTap, Op: side + " GET", HDR: hdr})
	}
	w.Histogram(recording.Histogram{Second: 1, Source: recording.SourceTap, Op: "server GET", HDR: []byte("damaged")})
	w.Sample(recording.Sample{
		Source: recording.SourceTap, Subject: recording.SubjectSelf, Name: "tap.unaligned",
		Value: 7,
	})
	w.Sample(recording.Sample{
		Source: recording.SourceTap, Subject: recording.SubjectSelf, Name: "tap.dropped",
		Value: 3,
	})
	if got := strings.Join(shown, ","); got != "GET 20,GET 30,GET 10,GET 1,GET 3" {
		t.Errorf("shown: %s", got)
	}
	s := w.Summary()
	if s.Slow != 4 || s.Matched != 3 || !s.Filtered || s.Calls != 101 || s.Unaligned != 7 || s.Dropped != 3 ||
		s.SlowNs != 5*ms || s.Fast != 3 {
		t.Errorf("%+v", s)
	}
	if len(s.Commands) != 1 || s.Commands[0].Op != "GET" || s.Commands[0].Calls != 100 || s.Commands[0].Slow != 3 ||
		s.Commands[0].MaxNs != 30*ms {
		t.Errorf("%+v", s.Commands)
	}
	if len(s.Waits) != 1 || s.Waits[0].What != "KEYS from 10.0.0.7 (redis-cli)" || s.Waits[0].Calls != 2 ||
		s.Waits[0].Ns != 50*ms {
		t.Errorf("%+v", s.Waits)
	}
	if len(s.Account) != 2 || s.Account[0].Ns != 50*ms {
		t.Errorf("%+v", s.Account)
	}
	if len(kept.Calls) != 8 || len(kept.Histograms) != 3 {
		t.Errorf("the recording has %d calls and %d histograms", len(kept.Calls), len(kept.Histograms))
	}
	// The recording gives the same summary.
	again := NewWatch(Options{Filter: w.Filter, Slow: w.Slow})
	kept.Index()
	Replay(kept, again)
	if got := again.Summary(); fmt.Sprint(got) != fmt.Sprint(s) {
		t.Errorf("replayed: %+v\nlive: %+v", got, s)
	}
}

func TestGeneralize(t *testing.T) {
	for culprit, want := range map[string]string{
		"KEYS from 127.0.0.1:48440 (redis-cli[22907])": "KEYS from 127.0.0.1 (redis-cli)",
		"KEYS from [::1]:48440":                        "KEYS from [::1]",
		"stress-ng[77]":                                "stress-ng",
		"/redis.slice":                                 "/redis.slice",
	} {
		if got := generalize(culprit); got != want {
			t.Errorf("%q: %q", culprit, got)
		}
	}
}
