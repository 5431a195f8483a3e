package ring_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"slowpath/internal/agent/folder/foldertest"
	"slowpath/internal/agent/ring"
	"slowpath/internal/recording"
)

const (
	node    = "127.0.0.1:6379"
	startNs = int64(1_790_000_000e9)
)

// said are the sentences that a ring logged.
type said struct {
	mu  sync.Mutex
	all []string
}

func (s *said) add(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, text)
}

func (s *said) count(part string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, text := range s.all {
		if strings.Contains(text, part) {
			n++
		}
	}
	return n
}

// opened opens a ring with files of a second, whose clock a test sets.
func opened(t *testing.T, dir string, o ring.Options) (*ring.Ring, *fakeClock, *said) {
	t.Helper()
	return openedAt(t, dir, startNs, o)
}

func openedAt(t *testing.T, dir string, ns int64, o ring.Options) (*ring.Ring, *fakeClock, *said) {
	t.Helper()
	c, log := &fakeClock{}, &said{}
	c.ns.Store(ns)
	o.Folder, o.Clock, o.Log = foldertest.Open(t, dir), c, log.add
	if o.Each == 0 {
		o.Each = time.Second
	}
	r, err := ring.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r, c, log
}

// saveAt saves a window at a path.
func saveAt(t *testing.T, r *ring.Ring, from, to time.Time, path string) error {
	t.Helper()
	return r.Save(t.Context(), from, to, foldertest.Open(t, filepath.Dir(path)), filepath.Base(path))
}

// saved saves a window, in seconds from startNs, and reads it.
func saved(t *testing.T, r *ring.Ring, from, to float64) *recording.Recording {
	t.Helper()
	rec, err := save(t, r, from, to)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

func save(t *testing.T, r *ring.Ring, from, to float64) (*recording.Recording, error) {
	t.Helper()
	at := func(s float64) time.Time { return time.Unix(0, startNs+int64(s*1e9)) }
	path := filepath.Join(t.TempDir(), "saved.slowpath")
	if err := saveAt(t, r, at(from), at(to), path); err != nil {
		if left, _ := os.ReadDir(filepath.Dir(path)); len(left) > 0 {
			t.Errorf("a save that failed left %v", left)
		}
		return nil, err
	}
	return recording.Open(path)
}

// call is one that ended then.
func call(ns int64) recording.Call {
	return recording.Call{
		Source: recording.SourceTap, Op: "GET", Node: node, IntendedNs: ns - 2e6, StartNs: ns - 2e6, EndNs: ns,
		Slot: -1,
	}
}

// TestSeams: every call of a window is in its recording once, whichever files it comes from.
func TestSeams(t *testing.T) {
	r, c, _ := opened(t, t.TempDir(), ring.Options{})
	const calls = 2000 // 200 per second
	for i := range calls {
		ns := startNs + int64(i)*5e6
		c.ns.Store(ns)
		r.Call(call(ns), recording.Segment{Actor: recording.Server, State: recording.Exec, FromNs: ns - 1e6, ToNs: ns})
		if i%37 == 0 {
			if err := r.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := r.Status().Files; n < 5 {
		t.Fatalf("%d files of ten seconds", n)
	}
	for _, w := range [][2]float64{{0, 10}, {1, 4}, {2, 3.5}, {9, 10}} {
		rec := saved(t, r, w[0], w[1])
		if want := int((w[1] - w[0]) * 200); len(rec.Calls) != want {
			t.Errorf("%v: %d calls, want %d", w, len(rec.Calls), want)
		}
		seen := map[int64]bool{}
		for _, c := range rec.Calls {
			if seen[c.EndNs] || len(rec.SegmentsOf(c.ID)) != 1 {
				t.Fatalf("%v: the call at %d is there twice, or has %d segments", w, c.EndNs, len(rec.SegmentsOf(c.ID)))
			}
			seen[c.EndNs] = true
		}
	}
	for _, w := range [][2]float64{{-10, -5}, {20, 30}} {
		if _, err := save(t, r, w[0], w[1]); !errors.Is(err, ring.ErrNothing) {
			t.Errorf("%v: got %v", w, err)
		}
	}
}

// TestWhatHeldIsCarriedOver: what was written once, long before a window, is in its recording; what counts from the
// begin of the watch counts from that of the window.
func TestWhatHeldIsCarriedOver(t *testing.T) {
	r, c, _ := opened(t, t.TempDir(), ring.Options{})
	spot := recording.Detail(recording.BlindSpot{What: "all", Why: "dark"})
	sample := func(ns int64, source, subject, name string, v float64) {
		r.Sample(recording.Sample{TimeNs: ns, Source: source, Subject: subject, Name: name, Value: v})
	}
	unseen := func(ns int64, count, of float64) {
		r.Event(recording.Event{
			TimeNs: ns, Source: recording.SourceTap, Subject: recording.SubjectSelf, Kind: recording.KindUnseen,
			Detail: recording.Detail(recording.Unseen{What: "calls", Count: count, Of: of}),
		})
	}
	r.SetMeta(recording.MetaTarget, node)
	r.SetMeta(recording.MetaStart, fmt.Sprint(startNs))
	sample(startNs, recording.SourceServer, node, "maxmemory", 7)
	r.Snapshot(recording.Snapshot{
		TimeNs: startNs, Source: recording.SourceServer, Subject: node, Name: "config", Body: "{}",
	})
	r.Event(recording.Event{
		TimeNs: startNs, Source: "watch", Subject: node, Kind: recording.KindBlindSpot, Detail: spot,
	})
	for i := range int64(20) {
		ns := startNs + i*500e6
		c.ns.Store(ns)
		r.Call(call(ns))
		sample(ns, recording.SourceTap, recording.SubjectSelf, "tap.calls.server", float64(100*i))
		unseen(ns, float64(10*i), float64(1000*i))
		r.ConnUse("10.0.0.1:5", recording.ConnUse{
			TimeNs: ns, Calls: 3 * i, InFlightNs: i * 1e6, Prompt: -1, IdleMaxNs: -1,
		})
		if err := r.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	rec := saved(t, r, 6, 9.6) // rows 12 to 19
	start, end := rec.Window()
	if start != startNs+6e9 || end > startNs+96e8 || end < startNs+95e8 {
		t.Errorf("the recording is from %d to %d", start-startNs, end-startNs)
	}
	held := recording.Point{TimeNs: start, Value: 7}
	if v := rec.Series(recording.SourceServer, node, "maxmemory"); len(v) != 1 || v[0] != held {
		t.Errorf("maxmemory is %v", v)
	}
	if s, ok := rec.SnapshotOf(recording.SourceServer, node, "config"); !ok || s.TimeNs != start || s.Body != "{}" {
		t.Errorf("config is %v", s)
	}
	if e := rec.EventsOf("watch", node, recording.KindBlindSpot); len(e) != 1 || e[0].Detail != spot {
		t.Errorf("blind spots are %v", e)
	}
	if rec.Meta[recording.MetaTarget] != node {
		t.Errorf("meta is %v", rec.Meta)
	}
	if v, _ := rec.Series(recording.SourceTap, recording.SubjectSelf, "tap.calls.server").Last(); v != 800 {
		t.Errorf("the tap counted %v calls in the window", v)
	}
	all := rec.EventsOf(recording.SourceTap, recording.SubjectSelf, recording.KindUnseen)
	if u := recording.DetailOf[recording.Unseen](all[len(all)-1]); u.Count != 80 || u.Of != 8000 {
		t.Errorf("not seen: %v", u)
	}
	if u, _ := rec.LastConnUse("10.0.0.1:5"); u.Calls != 24 || u.InFlightNs != 8e6 {
		t.Errorf("the connection was used: %+v", u)
	}
}

// TestAnotherWatch: a watch that begins after another one does not know what that one knew, and the time between them
// is a blind spot of a window that has both.
func TestAnotherWatch(t *testing.T) {
	r, c, _ := opened(t, t.TempDir(), ring.Options{})
	r.SetMeta(recording.MetaTarget, "first")
	r.SetMeta(recording.MetaStart, fmt.Sprint(startNs+1e8))
	r.Event(recording.Event{
		TimeNs: startNs, Source: "watch", Subject: node, Kind: recording.KindBlindSpot,
		Detail: recording.Detail(recording.BlindSpot{What: "first", Why: "w"}),
	})
	r.Call(call(startNs + 1e9))
	c.ns.Store(startNs + 2e9)
	r.SetMeta(recording.MetaEnd, fmt.Sprint(startNs+2e9))
	if err := r.Flush(); err != nil {
		t.Fatal(err)
	}
	c.ns.Store(startNs + 10e9)
	_ = r.Flush()
	r.SetMeta(recording.MetaTarget, "second")
	r.SetMeta(recording.MetaStart, fmt.Sprint(startNs+10e9))
	r.Call(call(startNs + 11e9))
	c.ns.Store(startNs + 12e9)
	if err := r.Flush(); err != nil {
		t.Fatal(err)
	}
	spots := func(rec *recording.Recording) (out []string) {
		for _, e := range rec.Events {
			if e.Kind == recording.KindBlindSpot {
				out = append(out, recording.DetailOf[recording.BlindSpot](e).What)
			}
		}
		return out
	}
	both := saved(t, r, 0, 12)
	if len(both.Calls) != 2 || both.Meta[recording.MetaTarget] != "second" || len(spots(both)) != 2 ||
		!strings.Contains(strings.Join(spots(both), "; "), "everything from ") {
		t.Errorf("both: %d calls, meta %v, blind spots %q", len(both.Calls), both.Meta, spots(both))
	}
	// Its calls are of both watches, and so is its time: without that between them.
	if start, end := both.Window(); start != startNs+1e8 || end != startNs+12e9 ||
		both.WatchedNs(start, end) != 1.9e9+2e9 {
		t.Errorf("both: %v of %v were watched", time.Duration(both.WatchedNs(start, end)), time.Duration(end-start))
	}
	second := saved(t, r, 10.5, 12)
	if len(second.Calls) != 1 || len(spots(second)) != 0 {
		t.Errorf("the second: %d calls, blind spots %q", len(second.Calls), spots(second))
	}
}

// TestClockJumps: a clock that was set between two agents loses nothing of the new one.
func TestClockJumps(t *testing.T) {
	for name, by := range map[string]float64{"back": -3600, "forward": 86400} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			r, c, _ := opened(t, dir, ring.Options{Keep: time.Minute})
			for i := range int64(8) {
				c.ns.Store(startNs + i*500e6)
				r.Call(call(c.Now()))
				_ = r.Flush()
			}
			r.Close()
			r, c, _ = openedAt(t, dir, startNs+int64(by*1e9), ring.Options{Keep: time.Minute})
			for i := range int64(8) {
				c.ns.Store(startNs + int64(by*1e9) + i*500e6)
				r.Call(call(c.Now()))
				if err := r.Flush(); err != nil {
					t.Fatal(err)
				}
			}
			if rec := saved(t, r, by-1, by+4); len(rec.Calls) != 8 {
				t.Errorf("%d calls after the jump", len(rec.Calls))
			}
			if rec, err := save(t, r, -1, 3.9); by > 0 && (err != nil || len(rec.Calls) != 8) {
				t.Errorf("before the jump: %v", err)
			}
		})
	}
}
