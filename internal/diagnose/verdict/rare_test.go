package verdict_test

import (
	"maps"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"slowpath/internal/diagnose/corpus"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
)

// TestRareCalls: recordings of clients that call every few seconds are judged the same where all their pauses are forty
// times as long: one call in minutes, beside fifty of slowpath a second. Healthy ones stay without a finding.
func TestRareCalls(t *testing.T) {
	for scenario, want := range map[string]string{
		"pool-idle-reap-redial":             "pool-idle-reap-redial",
		"pool-idle-reap-redial-go-redis-v8": "pool-idle-reap-redial",
		"pool-idle-reap-redial-tls":         "pool-idle-reap-redial",
		"stale-conn-server-timeout":         "stale-conn-server-timeout",
		"healthy-tls-pool":                  "",
		"healthy-idle":                      "",
	} {
		path := filepath.Join(t.TempDir(), "recording.slowpath")
		if err := corpus.Unpack(scenario, path); err != nil {
			t.Fatal(err)
		}
		rec, err := recording.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		const times = 40
		d := verdict.Diagnose(slower(t, rec, times), "test")
		got := ""
		if len(d.Findings) > 0 {
			got = d.Findings[0].Cause
			if n := d.Findings[0].Samples; n > d.Latency.UserCalls {
				t.Errorf("%s: %s rests on %d calls, clients made %d", scenario, got, n, d.Latency.UserCalls)
			}
		}
		if got != want {
			t.Errorf("%s, pauses of %d times: %q, want %q: %s", scenario, times, got, want, d.Summary)
		}
		if d.Verdict == verdict.Healthy && d.Latency.UserCalls > 0 && d.Latency.UserCalls < 300 &&
			!strings.Contains(d.Summary, "too few to tell") {
			t.Errorf("%s: %d calls of clients, and %q", scenario, d.Latency.UserCalls, d.Summary)
		}
	}
}

// slower is a recording in which the pauses of the clients' connections are so many times as long, and what happened
// meanwhile is as far apart. What took time takes as long as before. The calls of slowpath come again and again until
// the end, as it makes as many a second, and as many slow ones, in a longer watch.
func slower(t *testing.T, rec *recording.Recording, times int64) *recording.Recording {
	at := stretched(rec, times)
	start, end := rec.Window()
	out := recording.New()
	maps.Copy(out.Meta, rec.Meta)
	out.SetMeta(recording.MetaEnd, strconv.FormatInt(at(end), 10))
	for _, c := range rec.Calls {
		segments := rec.SegmentsOf(c.ID)
		call := func(later int64) {
			c := c
			c.ID, c.IntendedNs, c.StartNs, c.EndNs = 0, c.IntendedNs+later, c.StartNs+later, c.EndNs+later
			out.Call(c, segments...)
		}
		if c.Source != recording.SourceProbe {
			call(at(c.IntendedNs) - c.IntendedNs)
			continue
		}
		for later := int64(0); c.EndNs+later <= at(end); later += end - start {
			call(later)
		}
	}
	for _, h := range rec.Histograms {
		h.Second = at(h.Second)
		out.Histogram(h)
	}
	for _, source := range []string{
		recording.SourceProbe, recording.SourceServer, recording.SourceHost, recording.SourceTap,
	} {
		for subject, names := range rec.NamesBySubject(source, "") {
			for _, name := range names {
				for _, p := range rec.Series(source, subject, name) {
					out.Sample(recording.Sample{
						TimeNs: at(p.TimeNs), Source: source, Subject: subject, Name: name, Value: p.Value,
					})
				}
			}
		}
	}
	for _, client := range rec.UsedConns() {
		last, idle := recording.ConnUse{TimeNs: start}, int64(0)
		for u := range rec.ConnUses(client) {
			longer := at(u.TimeNs) - at(last.TimeNs) - (u.TimeNs - last.TimeNs)
			idle += u.IdleNs - last.IdleNs + longer
			last = u
			u.TimeNs, u.IdleNs, u.IdleMaxNs = at(u.TimeNs), idle, -1
			out.ConnUse(client, u)
		}
	}
	for _, s := range rec.Snapshots {
		s.TimeNs = at(s.TimeNs)
		out.Snapshot(s)
	}
	for _, e := range rec.Events {
		before := e.TimeNs
		e.TimeNs = at(before)
		switch e.Kind {
		case recording.KindOpen, recording.KindClose:
			d := recording.DetailOf[recording.ConnDetail](e)
			d.IdleNs = e.TimeNs - at(before-d.IdleNs)
			d.AgeNs = e.TimeNs - at(before-d.AgeNs)
			e.Detail = recording.Detail(d)
		case recording.KindHandshake:
			opened := before + recording.DetailOf[recording.HandshakeDetail](e).DialNs
			e.TimeNs = at(opened) - (opened - before)
		}
		out.Event(e)
	}
	out.Index()
	if got, _ := out.Window(); got != start {
		t.Fatalf("the watch begins at %d, not at %d", got, start)
	}
	return out
}

// stretched gives the times of a recording in one whose pauses are so many times as long.
func stretched(rec *recording.Recording, times int64) func(ns int64) int64 {
	const pause = int64(100e6)
	start, end := rec.Window()
	known := []int64{start, end}
	for _, e := range rec.Events {
		if e.Kind == recording.KindOpen || e.Kind == recording.KindClose || e.Kind == recording.KindHandshake {
			known = append(known, e.TimeNs, e.TimeNs+e.DurationNs)
		}
		if e.Kind == recording.KindClose {
			known = append(known, e.TimeNs-recording.DetailOf[recording.ConnDetail](e).IdleNs)
		}
	}
	for _, client := range rec.UsedConns() {
		for u := range rec.ConnUses(client) {
			known = append(known, u.TimeNs)
		}
	}
	slices.Sort(known)
	known = slices.Compact(slices.DeleteFunc(known, func(ns int64) bool { return ns < start || ns > end }))
	then := []int64{start}
	for i := 1; i < len(known); i++ {
		apart := known[i] - known[i-1]
		if apart > pause {
			apart *= times
		}
		then = append(then, then[i-1]+apart)
	}
	return func(ns int64) int64 {
		i := sort.Search(len(known), func(i int) bool { return known[i] > ns }) - 1
		if i < 0 || i == len(known)-1 { // before the begin, or at the end
			i = max(i, 0)
			return then[i] + ns - known[i]
		}
		share := float64(ns-known[i]) / float64(known[i+1]-known[i])
		return then[i] + int64(share*float64(then[i+1]-then[i]))
	}
}
