package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"slowpath/internal/agent/folder"
	"slowpath/internal/agent/incidents"
	"slowpath/internal/agent/web"
	"slowpath/internal/clock"
	"slowpath/internal/diagnose/compare"
	"slowpath/internal/diagnose/corpus"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/live"
	"slowpath/internal/recording"
	"slowpath/internal/report"
)

// node is the server of the fixture.
const node = "127.0.0.1:6379"

// world is an agent's memory, made of recordings of the corpus that the real code has judged.
type world struct {
	store   *incidents.Store
	history *incidents.History
	view    *live.View
	ids     map[string]string // of incidents, by their recording
	now     time.Time         // when it was made
	clock   clock.Clock       // nil: the real one; else it stands still
}

// stopped is a clock that stands still.
type stopped time.Time

// Now implements clock.Clock.
func (s stopped) Now() int64 { return time.Time(s).UnixNano() }

// past are the incidents of the fixture: what was recorded, and when it was.
var past = []struct {
	recording, trigger string
	ago                time.Duration
}{
	{"slow-command", "312 calls of 10 s were slow", 26 * time.Hour},
	{"pool-exhausted-wait", "p99 of 41 ms is above the goal of 10 ms", 20 * time.Hour},
	{"healthy-mixed", "SIGUSR1", 13 * time.Hour},
	{"server-unavailable", "41 calls of 10 s failed", 9 * time.Hour},
	{"lb-hop", "99 calls of 10 s were slow", 5 * time.Hour},
	{"hot-shard-or-hot-key", "1 204 calls of 10 s were slow", 3 * time.Hour},
	{"server-cfs-throttled", "820 calls of 10 s were slow", 4 * time.Minute},
}

// emptyWorld has no incidents, minutes and calls yet. Its time stands still.
func emptyWorld(t testing.TB) *world {
	t.Helper()
	now := time.Now()
	return emptyWorldIn(t, t.TempDir(), now, stopped(now))
}

// shared is the fixture of tests that change nothing of it.
var shared struct {
	sync.Once
	dir   string
	world *world
}

func sharedWorld(t testing.TB) *world {
	t.Helper()
	shared.Do(func() {
		var err error
		if shared.dir, err = os.MkdirTemp("", "slowpath-web-"); err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		shared.world = newWorldIn(t, shared.dir, now, stopped(now))
	})
	if shared.world == nil {
		t.Fatal("the fixture could not be made")
	}
	return shared.world
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.world != nil {
		shared.world.history.Close()
	}
	if shared.dir != "" {
		os.RemoveAll(shared.dir)
	}
	os.Exit(code)
}

func emptyWorldIn(t testing.TB, dir string, now time.Time, c clock.Clock) *world {
	t.Helper()
	w := &world{ids: map[string]string{}, now: now, clock: c, view: live.New(live.Options{Clock: c})}
	data, err := folder.Open(dir) // the shared one stays open until the end of all tests
	if err != nil {
		t.Fatal(err)
	}
	in, err := data.Sub("incidents")
	if err != nil {
		t.Fatal(err)
	}
	if w.store, err = incidents.Open(in, incidents.Limits{}); err != nil {
		t.Fatal(err)
	}
	if w.history, err = incidents.OpenHistory(data, "history.db", 0, 0); err != nil {
		t.Fatal(err)
	}
	if dir != shared.dir {
		t.Cleanup(func() { w.history.Close() })
	}
	return w
}

// newWorldIn makes the fixture: incidents of the last day, an hour of minutes, and the last minutes of a watch.
func newWorldIn(t testing.TB, dir string, now time.Time, c clock.Clock) *world {
	t.Helper()
	w := emptyWorldIn(t, dir, now, c)
	for _, p := range past {
		w.ids[p.recording] = w.judged(t, p.recording, p.trigger, w.now.Add(-p.ago))
	}
	for _, m := range []incidents.Mark{
		{Time: w.now.Add(-5 * time.Minute), Text: "deploy of shop 1.2.3"},
		{Time: w.now.Add(-13 * time.Hour), Text: "failover test"},
	} {
		if err := w.store.Mark(m); err != nil {
			t.Fatal(err)
		}
	}
	healthy, throttled := corpus.Open(t, "healthy-mixed"), corpus.Open(t, "server-cfs-throttled")
	w.minutes(t, healthy, throttled)
	for back := 7 * time.Minute; back > 0; back -= 8 * time.Second {
		rec := healthy
		if back <= 4*time.Minute && back > 4*time.Minute-24*time.Second {
			rec = throttled
		}
		replay(w.view, rec, w.now.Add(-back))
	}
	return w
}

// judged is an incident with the recording, the diagnosis and the report that the agent would have made.
func (w *world) judged(t testing.TB, name, trigger string, start time.Time) string {
	t.Helper()
	of := judgedOnce(t, name)
	in, err := w.store.Begin(trigger, of.target, start)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := w.store.Folder(in.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	if err := corpus.Unpack(name, kept.Path(incidents.RecordingFile)); err != nil {
		t.Fatal(err)
	}
	in.End = start.Add(time.Duration(of.seconds * float64(time.Second)))
	if err := w.store.Update(in); err != nil {
		t.Fatal(err)
	}
	err = os.WriteFile(kept.Path(incidents.ReportFile), of.page, 0o600)
	if err := errors.Join(err, w.store.Finish(in.ID, of.document)); err != nil {
		t.Fatal(err)
	}
	return in.ID
}

// verdictOf is what the real code says of a recording of the corpus.
type verdictOf struct {
	target         string
	seconds        float64
	page, document []byte
}

var verdicts sync.Map // of verdictOf, by recording: each is judged once

func judgedOnce(t testing.TB, name string) verdictOf {
	t.Helper()
	if of, ok := verdicts.Load(name); ok {
		return of.(verdictOf)
	}
	rec := corpus.Open(t, name)
	d := verdict.Diagnose(rec, "test")
	var page, document bytes.Buffer
	over, ok := compare.CallsOverTime(rec, d)
	if err := errors.Join(report.HTML(&page, d, over, ok), report.JSON(&document, d)); err != nil {
		t.Fatal(err)
	}
	of := verdictOf{d.Target.Address, d.Window.Seconds, page.Bytes(), document.Bytes()}
	verdicts.Store(name, of)
	return of
}

// minutes fills the history: the seconds of a recording, as often as a minute has them.
func (w *world) minutes(t testing.TB, healthy, throttled *recording.Recording) {
	t.Helper()
	calm, slow := minuteOf(t, healthy), minuteOf(t, throttled)
	for start := w.now.Add(-25*time.Hour).Unix() / 60 * 60; start < w.now.Unix()-120; start += 60 {
		m := calm
		for _, p := range past {
			at := w.now.Add(-p.ago).Unix()
			if at >= start && at < start+60 && p.recording != "healthy-mixed" {
				m = slow
			}
		}
		m.Start = start
		if err := w.history.Add(m); err != nil {
			t.Fatal(err)
		}
	}
}

// minuteOf is a minute of a recording's calls of users, at the clients' end.
func minuteOf(t testing.TB, rec *recording.Recording) incidents.Minute {
	t.Helper()
	sum := hdrhistogram.New(1, int64(time.Hour), 2)
	for _, of := range rec.HistogramSums(recording.SourceTap) {
		if len(of.Op) > 6 && of.Op[:6] == recording.Client {
			for range 7 { // it has eight seconds
				sum.Merge(of.Sum)
			}
		}
	}
	m := incidents.Minute{
		Node: node, Calls: sum.TotalCount(), P50Ns: sum.ValueAtQuantile(50), P99Ns: sum.ValueAtQuantile(99),
		MaxNs: sum.Max(),
	}
	for _, b := range sum.Distribution() {
		if b.From >= 5e6 {
			m.Slow += b.Count
		}
	}
	var err error
	if m.HDR, err = sum.Encode(hdrhistogram.V2CompressedEncodingCookieBase); err != nil || m.Calls == 0 {
		t.Fatalf("%v, %d calls", err, m.Calls)
	}
	return m
}

// replay gives a view a recording as if it had begun at a time, and all of its servers were the fixture's.
func replay(v recording.Sink, rec *recording.Recording, begin time.Time) {
	start, _ := rec.Window()
	shift := begin.UnixNano() - start
	for key, value := range rec.Meta {
		v.SetMeta(key, value)
	}
	nodes, _ := json.Marshal([]string{node})
	v.SetMeta(recording.MetaNodes, string(nodes))
	for _, h := range rec.Histograms {
		h.Second, h.Node = h.Second+shift/1e9, node
		v.Histogram(h)
	}
	for _, c := range rec.Calls {
		segments := append([]recording.Segment(nil), rec.SegmentsOf(c.ID)...)
		for i := range segments {
			segments[i].FromNs, segments[i].ToNs = segments[i].FromNs+shift, segments[i].ToNs+shift
		}
		c.IntendedNs, c.StartNs, c.EndNs, c.Node = c.IntendedNs+shift, c.StartNs+shift, c.EndNs+shift, node
		v.Call(c, segments...)
	}
	for _, e := range rec.Events {
		if e.Kind == recording.KindOpen || e.Kind == recording.KindHandshake || e.Kind == recording.KindBlindSpot {
			e.TimeNs, e.Subject = e.TimeNs+shift, node
			v.Event(e)
		}
	}
	for _, client := range rec.UsedConns() {
		for u := range rec.ConnUses(client) {
			v.ConnUse(client, u)
		}
	}
	for _, s := range rec.Snapshots {
		s.Subject = node
		v.Snapshot(s)
	}
}

// options are those of a server that shows the fixture.
func (w *world) options() web.Options {
	now := time.Now
	if w.clock != nil {
		now = func() time.Time { return w.now }
	}
	return web.Options{
		Now:   now,
		Store: w.store, History: w.history, View: w.view, Health: func() web.Health {
			h := healthy()
			h.Targets = []web.Watched{
				{Target: node, State: web.StateWatched, Found: true},
				{Target: "10.0.0.7:6379", State: web.StateUnreachable, Why: "connection refused; it is tried again"},
			}
			h.Status = web.Degraded
			h.Problems = []string{"10.0.0.7:6379 cannot be reached: connection refused. Is it still a server of yours?"}
			for _, b := range w.view.BlindSpots() {
				h.Unseen = append(h.Unseen, web.BlindSpot{What: b.What, Why: b.Why, Enable: b.Enable})
			}
			h.Cost = web.Cost{
				CPUShare: .0061, CPUBudget: .01, RSSBytes: 47 << 20, RSSBudgetBytes: 64 << 20, HooksShare: .012,
			}
			h.Ring = web.Kept{From: w.now.Add(-15 * time.Minute), To: w.now, Bytes: 31 << 20}
			h.Disk = web.Disk{Bytes: 211 << 20, BudgetBytes: 512 << 20}
			return h
		},
		Trigger: func(reason string) (string, error) {
			in, err := w.store.Begin(reason, node, now())
			return in.ID, err
		},
	}
}

// comparing are options whose comparisons are those of the real code: a window of the ring is a recording of the
// corpus.
func comparing(o web.Options) web.Options {
	o.Save = func(_ context.Context, _, _ time.Time, in *folder.Folder, name string) error {
		return corpus.Unpack("healthy-mixed", in.Path(name))
	}
	o.Compare = func(_ context.Context, before, after string) ([]byte, error) {
		var sides [2]compare.Side
		for i, path := range []string{before, after} {
			rec, err := recording.OpenToJudge(path)
			if err != nil {
				return nil, err
			}
			sides[i] = compare.SideOf(rec, "test")
		}
		var out bytes.Buffer
		err := report.CompareJSON(&out, compare.Of(sides[0], sides[1], [2]string{}, compare.Notable))
		return out.Bytes(), err
	}
	return o
}

// clusterWorld is a view of a cluster.
func clusterWorld(t testing.TB, now time.Time, c clock.Clock) *live.View {
	t.Helper()
	rec := corpus.Open(t, "healthy-cluster")
	start, _ := rec.Window()
	v := live.New(live.Options{Clock: c})
	shift := now.Add(-15*time.Second).UnixNano() - start
	for key, value := range rec.Meta {
		v.SetMeta(key, value)
	}
	for _, h := range rec.Histograms {
		h.Second += shift / 1e9
		v.Histogram(h)
	}
	for _, s := range rec.Snapshots {
		v.Snapshot(s)
	}
	for _, e := range rec.Events {
		if e.Kind == recording.KindOpen {
			v.Event(e)
		}
	}
	for _, client := range rec.UsedConns() {
		for u := range rec.ConnUses(client) {
			v.ConnUse(client, u)
		}
	}
	return v
}

// replayNames adds a slow call whose names are those of an attacker.
func replayNames(v recording.Sink, now int64, name string) {
	v.Call(recording.Call{
		Source: recording.SourceTap, Op: name, Node: name, Conn: name, Client: name + "[1]", Error: name,
		IntendedNs: now - 50e6, StartNs: now - 50e6, EndNs: now,
	}, recording.Segment{Actor: name, State: name, Culprit: name, FromNs: now - 40e6, ToNs: now})
	v.ConnUse(name, recording.ConnUse{TimeNs: now, Calls: 3})
	v.SetMeta(recording.MetaServer, name)
}
