package recording

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// flood writes what a busy server gives in a tenth of a second, many times: connections that come and go, waits, calls
// of the probe, and every second the fields of INFO and a histogram. Each hundredth call of the tap takes 50 ms.
type flood struct {
	t      *testing.T
	w      *Writer
	path   string
	bound  int64
	nowNs  int64
	rand   *rand.Rand
	opens  int
	tenths int
	calls  int64 // of the probe, which the histograms count
	most   int64 // bytes of all files of the recording
}

func newFlood(t *testing.T, bound int64) *flood {
	path := file(t)
	f := &flood{
		t: t, w: create(t, path, bound), path: path, bound: bound, nowNs: time.Now().UnixNano(),
		rand: rand.New(rand.NewPCG(1, 2)),
	}
	f.w.SetMeta(MetaStart, fmt.Sprint(f.nowNs))
	return f
}

func (f *flood) tenth(connections int) {
	for range connections {
		f.opens++
		f.nowNs += int64(1e8) / int64(connections)
		client := fmt.Sprintf("10.0.0.%d:%d", f.rand.IntN(200), 1024+f.rand.IntN(60000))
		for _, kind := range []string{KindOpen, KindHandshake, KindClose} {
			f.w.Event(Event{
				TimeNs: f.nowNs, DurationNs: 1000, Source: SourceTap, Subject: "a:1", Kind: kind,
				Detail: Detail(ConnDetail{Client: client, Side: Server, AgeNs: 1e6, Calls: 1}),
			})
		}
		f.w.Event(Event{
			TimeNs: f.nowNs, DurationNs: 2e6, Source: SourceTap, Subject: "a:1", Kind: KindRunQueue,
			Detail: `{"tid":7,"waited_for":"neighbour[9]"}`,
		})
	}
	for range 5 {
		f.calls++
		f.w.Call(Call{
			Source: SourceProbe, Conn: "kept", Op: "GET", IntendedNs: f.nowNs, StartNs: f.nowNs,
			EndNs: f.nowNs + 100_000, Node: "a:1",
		}, Segment{Actor: "client", State: "run-queue", FromNs: f.nowNs, ToNs: f.nowNs + 10})
	}
	for i := range 30 {
		f.w.Sample(Sample{
			TimeNs: f.nowNs, Source: SourceServer, Subject: "a:1", Name: fmt.Sprint("field", i),
			Value: f.rand.Float64(),
		})
	}
	h := hdrhistogram.New(1000, 1e9, 2)
	_ = h.RecordValues(100_000, 5)
	body, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		f.t.Fatal(err)
	}
	for i := range 8 {
		f.w.Histogram(Histogram{
			Second: f.nowNs / 1e9, Source: SourceProbe, Node: fmt.Sprint("a:", i), Op: "kept GET", HDR: body,
		})
	}
	if err := f.w.Flush(); err != nil {
		f.t.Fatal(err)
	}
	f.measure()
	if f.tenths++; f.tenths%5 == 0 {
		f.w.classes.nextInterval() // as the writer does each half second
	}
}

// measure checks the bound, WAL and shared memory included.
func (f *flood) measure() {
	bytes := int64(0)
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if st, err := os.Stat(f.path + suffix); err == nil {
			bytes += st.Size()
		}
	}
	if f.most = max(f.most, bytes); bytes > f.bound*11/10 {
		f.t.Fatalf("%d bytes on the disk, more than the limit of %d", bytes, f.bound)
	}
}

// slow writes a slow call, and what explains it.
func (f *flood) slow(ns int64) {
	f.w.Call(Call{
		Source: SourceTap, Conn: "10.0.0.1:1", Op: "KEYS", IntendedNs: f.nowNs, StartNs: f.nowNs, EndNs: f.nowNs + ns,
		Node: "a:1", Side: Server,
	}, Segment{Actor: "server", State: "exec", FromNs: f.nowNs, ToNs: f.nowNs + ns})
	f.w.Event(Event{
		TimeNs: f.nowNs, DurationNs: ns, Source: SourceTap, Subject: "a:1", Kind: KindInternal, Detail: `{"tid":7}`,
	})
}

func (f *flood) read() *Recording {
	f.w.SetMeta(MetaEnd, fmt.Sprint(f.nowNs+1e9))
	if err := f.w.Close(); err != nil {
		f.t.Fatal(err)
	}
	f.measure()
	r, err := Open(f.path)
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

// TestBoundOnDisk: a server with 12 000 events per second. The limit holds at every moment; slow calls stay, and what
// happened meanwhile; what is rare stays; of connections whole ones stay; the newest rows stay.
func TestBoundOnDisk(t *testing.T) {
	for bound, rounds := range map[int64]int{1 << 20: 20, 4 << 20: 60} {
		t.Run(fmt.Sprint(bound), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFlood(t, bound)
				for i := range rounds {
					if i%10 == 0 {
						f.slow(50e6)
					}
					if i%50 == 0 {
						f.w.Event(Event{TimeNs: f.nowNs, Source: SourceServer, Subject: "a:1", Kind: KindFork})
					}
					f.tenth(300)
				}
				r := f.read()
				if f.most < bound/2 {
					t.Errorf("at most %d bytes of %d were used", f.most, bound)
				}
				slow := 0
				for _, c := range r.Calls {
					if c.Source == SourceTap {
						slow++
						if len(r.SegmentsOf(c.ID)) != 1 {
							t.Errorf("slow call %d has %d segments", c.ID, len(r.SegmentsOf(c.ID)))
						}
					}
				}
				internal, forks := r.EventsOf(SourceTap, "", KindInternal), r.EventsOf(SourceServer, "", KindFork)
				if slow != rounds/10 || len(internal) != rounds/10 || len(forks) != (rounds+49)/50 {
					t.Errorf("%d slow calls, %d events of these, %d forks", slow, len(internal), len(forks))
				}
				if bound > 1<<20 { // a file of 1 MiB keeps the last seconds only
					f.checkWaits(r)
				}
				f.checkConnections(r)
				f.checkSaid(r)
			})
		})
	}
}

// checkWaits: one in twenty waits happened while a call was slow; of those that stay more did.
func (f *flood) checkWaits(r *Recording) {
	during, all := 0, 0
	for _, e := range r.EventsOf(SourceTap, "", KindRunQueue) {
		all++
		for _, c := range r.Calls {
			if c.Source == SourceTap && e.TimeNs < c.EndNs && e.TimeNs+e.DurationNs > c.IntendedNs {
				during++
			}
		}
	}
	if all < 500 || during*15 < all {
		f.t.Errorf("%d of %d waits happened while a call was slow", during, all)
	}
}

// checkConnections: most of the connections that are left have their begin and their end; the newest are there.
func (f *flood) checkConnections(r *Recording) {
	events := map[string]int{}
	newest := int64(0)
	for _, e := range r.Events {
		if e.Kind == KindOpen || e.Kind == KindHandshake || e.Kind == KindClose {
			events[DetailOf[ConnDetail](e).Client]++
			newest = max(newest, e.TimeNs)
		}
	}
	whole := 0
	for _, n := range events {
		if n >= 3 {
			whole++
		}
	}
	if len(events) < 20 || len(events) >= f.opens || whole < len(events)*3/4 || newest < f.nowNs-1e9 {
		f.t.Errorf("%d of %d connections, %d of them whole; the newest is %v old", len(events), f.opens, whole,
			time.Duration(f.nowNs-newest))
	}
}

// checkSaid: the recording says what was left out.
func (f *flood) checkSaid(r *Recording) {
	said := r.EventsOf(SourceRecording, SubjectSelf, KindUnseen)
	if !r.Thinned() || len(said) != 1 {
		f.t.Fatalf("thinned %v, said %+v", r.Thinned(), said)
	}
	u := DetailOf[Unseen](said[0])
	if !strings.Contains(u.What, "events open of tap (") || !strings.Contains(u.Enable, "--max-disk") || !u.Counted ||
		u.Count < 10_000 || u.Count >= u.Of {
		f.t.Errorf("%+v", u)
	}
}

// TestThinnedCalls: a long watch of a server without other events. Fast calls are thinned, the histograms count them
// all; of each series a first value stays.
func TestThinnedCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlood(t, 1<<20)
		f.w.Sample(Sample{TimeNs: f.nowNs, Source: SourceServer, Subject: "a:1", Name: "maxmemory", Value: 1})
		const rounds = 400
		for range rounds {
			f.tenth(1)
		}
		f.slow(7e6)
		r := f.read()
		counted := int64(0)
		for _, h := range r.Histograms {
			one, err := hdrhistogram.Decode(h.HDR)
			if err != nil {
				t.Fatal(err)
			}
			counted += one.TotalCount()
		}
		if counted != 8*f.calls || int64(len(r.Calls)) >= f.calls || len(r.Calls) < 100 ||
			len(r.Histograms) >= 8*rounds {
			t.Errorf("%d of %d calls in %d histograms; %d calls", counted, f.calls, len(r.Histograms), len(r.Calls))
		}
		for _, c := range r.Calls[:len(r.Calls)-1] {
			if len(r.SegmentsOf(c.ID)) != 1 {
				t.Fatalf("call %d has %d segments", c.ID, len(r.SegmentsOf(c.ID)))
			}
		}
		orphans := len(r.segments) - len(r.Calls)
		if v, ok := r.Series(SourceServer, "a:1", "maxmemory").Last(); !ok || v != 1 || orphans > len(r.Calls) {
			t.Errorf("maxmemory %v %v; %d segments of calls that are not there", v, ok, orphans)
		}
	})
}

// TestBoundOfSlowCalls: where slow calls alone are too many, the slowest of them stay, and it is said.
func TestBoundOfSlowCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlood(t, 1<<20)
		const calls = 6_000
		for i := range calls {
			f.nowNs += 1e6
			f.slow(10e6 + int64(i%10)*1e6)
			if i%1000 == 0 {
				f.slow(2e9)
				f.tenth(1)
			}
		}
		r := f.read()
		longest := 0
		for _, c := range r.Calls {
			if c.EndNs-c.IntendedNs == 2e9 {
				longest++
			}
		}
		said := r.EventsOf(SourceRecording, SubjectSelf, KindUnseen)
		if longest != calls/1000 || len(said) != 2 || !strings.Contains(said[0].Detail, slowCalls) {
			t.Errorf("%d of the slowest calls, %+v", longest, said)
		}
	})
}

// TestHugeRow: a row that would take most of the file is left out, and said.
func TestHugeRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlood(t, 1<<20)
		f.w.Snapshot(Snapshot{
			TimeNs: f.nowNs, Source: SourceServer, Subject: "a:1", Name: "clients",
			Body: strings.Repeat("x", 1<<20),
		})
		f.tenth(1)
		r := f.read()
		if len(r.Snapshots) != 0 || !r.Thinned() {
			t.Errorf("%d snapshots, thinned %v", len(r.Snapshots), r.Thinned())
		}
	})
}
