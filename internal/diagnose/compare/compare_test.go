package compare

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/corpus"
	"slowpath/internal/recording"
)

// change is what a comparison says of a cause; empty: nothing.
func (c Comparison) change(cause string) string {
	for _, f := range c.Findings {
		if f.Cause == cause {
			return f.Change
		}
	}
	return ""
}

// TestOf: a fault makes calls worse, and its end better; a recording does not differ from itself.
func TestOf(t *testing.T) {
	frozen := SideOf(corpus.Open(t, "process-frozen"), "test")
	healthy := SideOf(corpus.Open(t, "healthy-mixed"), "test")
	names := [2]string{"a", "b"}
	for _, tt := range []struct {
		name          string
		before, after Side
		verdict, is   string
	}{
		{"a fault", healthy, frozen, Worse, "new"},
		{"its end", frozen, healthy, Better, "gone"},
		{"the same fault", frozen, frozen, Same, "stays"},
		{"nothing", healthy, healthy, Same, ""},
	} {
		c := Of(tt.before, tt.after, names, Notable)
		if c.Verdict != tt.verdict || c.change("process-frozen") != tt.is || c.Population != "users" {
			t.Errorf("%s: %s of %s: %s; %+v", tt.name, c.Verdict, c.Population, c.Summary, c.Metrics)
		}
		if tt.is == "new" && !strings.Contains(c.Summary, "process-frozen is new") {
			t.Errorf("%s: %s", tt.name, c.Summary)
		}
		if len(c.Metrics) != 6 {
			t.Errorf("%s: %+v", tt.name, c.Metrics)
		}
	}
}

// TestFailed: a server that is gone answers no call late, and makes no comparison better.
func TestFailed(t *testing.T) {
	frozen := SideOf(corpus.Open(t, "process-frozen"), "test")
	gone := SideOf(corpus.Open(t, "server-unavailable"), "test")
	c := Of(frozen, gone, [2]string{"a", "b"}, Notable)
	if c.Verdict != Worse || !strings.Contains(c.Summary, "the share of failed ones went from 0 % to ") {
		t.Errorf("%s: %s", c.Verdict, c.Summary)
	}
	c = Of(gone, frozen, [2]string{"a", "b"}, Notable)
	if c.Verdict != Better {
		t.Errorf("%s: %s", c.Verdict, c.Summary)
	}
}

// TestStalls: rare stalls that are gone make calls better, whatever the median; a healthy watch has no more than
// itself.
func TestStalls(t *testing.T) {
	throttled := SideOf(corpus.Open(t, "server-cfs-throttled"), "test") // 0.4 % of the calls, of up to 80 ms
	healthy := SideOf(corpus.Open(t, "healthy-mixed"), "test")
	stalls := func(before, after Side) (Metric, Comparison) {
		c := Of(before, after, [2]string{"a", "b"}, Notable)
		for _, m := range c.Metrics {
			if m.Name == "stalls_per_minute" {
				return m, c
			}
		}
		t.Fatal("stalls are not compared")
		return Metric{}, c
	}
	if m, c := stalls(throttled, healthy); m.Verdict != Better || m.Before < 100 || m.After >= m.Before/2 ||
		!strings.Contains(c.Summary, "stalls went from") {
		t.Errorf("%+v: %s", m, c.Summary)
	}
	if m, c := stalls(healthy, healthy); m.Verdict != Same || c.Verdict != Same {
		t.Errorf("%+v: %s", m, c.Summary)
	}
}

// TestUnwatched: the time between two watches of one recording is in no rate.
func TestUnwatched(t *testing.T) {
	whole := SideOf(corpus.Open(t, "healthy-mixed"), "test")
	rec := corpus.Open(t, "healthy-mixed")
	start, end := rec.Window()
	const gap = int64(100e9)
	rec.SetMeta(recording.MetaEnd, strconv.FormatInt(end+gap, 10))
	rec.Event(recording.Event{
		TimeNs: end, DurationNs: gap, Source: recording.SourceRecording, Subject: recording.SubjectSelf,
		Kind: recording.KindUnwatched,
	})
	rec.Index()
	c := Of(whole, SideOf(rec, "test"), [2]string{"whole", "with a gap"}, Notable)
	for _, m := range c.Metrics {
		if m.Name == "calls_per_second" && (m.Before == 0 || math.Abs(m.After/m.Before-1) > 1e-3) {
			t.Errorf("%.0f and %.0f calls per second", m.Before, m.After)
		}
	}
	for _, caller := range c.Callers {
		if math.Abs(caller.After-caller.Before) > 1e-3*caller.Before {
			t.Errorf("%+v", caller)
		}
	}
	if w := SideOf(rec, "test").Diagnosis.Window; w.Seconds-w.Watched() < 99 ||
		math.Abs(w.Watched()-float64(end-start)/1e9) > 1e-3 {
		t.Errorf("the window is %+v", w)
	}
}

// TestConflict: where one metric got better and another worse, the time of calls decides.
func TestConflict(t *testing.T) {
	metric := func(name string, before, after float64) Metric {
		change, verdict := after/before-1, Better
		if after > before {
			verdict = Worse
		}
		return Metric{Name: name, Before: before, After: after, Change: &change, Verdict: verdict}
	}
	for _, tt := range []struct {
		name, verdict, says string
		metrics             []Metric
	}{
		{
			"no stalls any more, and a median 20 µs longer", Better, "p99 went from 68 ms to 1.5 ms, though p50",
			[]Metric{metric("p50_ns", 54e3, 75e3), metric("p99_ns", 68e6, 1.5e6)},
		},
		{
			"a shorter median, and stalls", Worse, "p99 went from 1.5 ms to 68 ms, though p50",
			[]Metric{metric("p50_ns", 75e3, 54e3), metric("p99_ns", 1.5e6, 68e6)},
		},
		{
			"a median twice as long, and a p99 a little shorter", Worse, "p50 went from 54 µs to 108 µs",
			[]Metric{metric("p50_ns", 54e3, 108e3), metric("p99_ns", 1.5e6, 1.2e6)},
		},
		{
			"fewer calls that fail, and stalls", Worse, "though the share of failed ones",
			[]Metric{metric("p99_ns", 1.5e6, 68e6), metric("failed_share", 0.01, 0.001)},
		},
		{
			"no stalls, and calls that fail", Worse, "though p99 went from 68 ms to 1.5 ms",
			[]Metric{metric("p99_ns", 68e6, 1.5e6), metric("failed_share", 0, 0.01)},
		},
	} {
		c := Comparison{Population: account.OfUsers, Metrics: tt.metrics}
		c.Verdict = judge(&c, Notable)
		if said := c.say(Notable); c.Verdict != tt.verdict || !strings.Contains(said, tt.says) {
			t.Errorf("%s: %s", tt.name, said)
		}
	}
}

// TestNotable: what is shown, and is less than somebody cares for, makes nothing better or worse.
func TestNotable(t *testing.T) {
	frozen := SideOf(corpus.Open(t, "process-frozen"), "test")
	healthy := SideOf(corpus.Open(t, "healthy-mixed"), "test")
	if c := Of(healthy, frozen, [2]string{}, 1e6); c.Verdict != Same {
		t.Errorf("%s: %s", c.Verdict, c.Summary)
	}
}

// TestDifferences: settings are compared between nodes with one address, else in their order; versions by what they
// are of.
func TestDifferences(t *testing.T) {
	of := func(node, maxmemory, libraries string) Side {
		rec := recording.New()
		rec.SetMeta(recording.MetaNodes, `["`+node+`"]`)
		rec.SetMeta(recording.MetaServer, "redis 7.0.15")
		rec.SetMeta(recording.MetaStart, "1000000000")
		rec.SetMeta(recording.MetaEnd, "11000000000")
		rec.Snapshot(recording.Snapshot{
			TimeNs: 2e9, Source: recording.SourceServer, Subject: node, Name: "config",
			Body: `{"maxmemory":"` + maxmemory + `","appendonly":"no"}`,
		})
		rec.Snapshot(recording.Snapshot{
			TimeNs: 2e9, Source: recording.SourceHost, Subject: recording.ProcessPrefix + "7", Name: "process",
			Body: `{"comm":"app","libraries":[` + libraries + `]}`,
		})
		rec.Index()
		return SideOf(rec, "test")
	}
	before := of("10.0.0.1:6379", "1gb", `{"name":"go-redis","version":"v8.0.0","how":"built-in"}`)
	after := of("10.0.0.2:6379", "2gb", `{"name":"go-redis","version":"v9.0.0","how":"built-in"}`)
	c := Of(before, after, [2]string{}, Notable)
	if len(c.Settings) != 1 || c.Settings[0] != (Difference{"maxmemory", "1gb", "2gb"}) {
		t.Errorf("settings: %+v", c.Settings)
	}
	if len(c.Versions) != 1 || c.Versions[0] != (Difference{"go-redis of app", "v8.0.0", "v9.0.0"}) {
		t.Errorf("versions: %+v", c.Versions)
	}
	if c.Verdict != Unknown || len(c.Metrics) != 0 {
		t.Errorf("without calls: %s, %+v", c.Verdict, c.Metrics)
	}
}
