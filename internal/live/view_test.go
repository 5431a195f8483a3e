package live_test

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	"slowpath/internal/diagnose/corpus"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/live"
	"slowpath/internal/recording"
)

// at is a clock that stands at a time.
type at int64

func (a at) Now() int64 { return int64(a) }

// replay gives a view all rows of a recording, which has just ended.
func replay(rec *recording.Recording) *live.View {
	_, end := rec.Window()
	v := live.New(live.Options{Clock: at(end + 3e9)})
	feed(v, rec)
	return v
}

func feed(v recording.Sink, rec *recording.Recording) {
	for k, value := range rec.Meta {
		v.SetMeta(k, value)
	}
	for _, e := range rec.Events {
		v.Event(e)
	}
	for _, h := range rec.Histograms {
		v.Histogram(h)
	}
	for _, c := range rec.Calls {
		v.Call(c, rec.SegmentsOf(c.ID)...)
	}
	for _, s := range rec.Snapshots {
		v.Snapshot(s)
	}
	for _, client := range rec.UsedConns() {
		for u := range rec.ConnUses(client) {
			v.ConnUse(client, u)
		}
	}
}

// TestViewCountsAsTheVerdict: a view has as many calls as the verdict of a recording, and about as many slow ones: the
// verdict counts calls near the threshold one by one.
func TestViewCountsAsTheVerdict(t *testing.T) {
	for _, name := range []string{
		"server-cfs-throttled", "slow-command", "healthy-mixed", "pool-exhausted-wait",
	} {
		t.Run(name, func(t *testing.T) {
			if !slices.Contains(corpus.Scenarios(), name) {
				t.Fatal("the corpus has no such recording")
			}
			rec := corpus.Open(t, name)
			rec.Index()
			v := replay(rec)
			d := verdict.Diagnose(rec, "test")
			start, end := rec.Window()
			calls, slow := map[live.Whose]int64{}, map[live.Whose]int64{}
			for _, s := range v.Seconds(start/1e9-2, end/1e9+2) {
				calls[s.Whose] += s.Calls
				slow[s.Whose] += s.Slow
				if s.Calls != s.Latencies.Calls() {
					t.Errorf("second %d: %d calls, %d with a time", s.Unix, s.Calls, s.Latencies.Calls())
				}
			}
			for _, p := range d.Populations {
				if p.Name != "users" {
					continue
				}
				if n := calls[live.Users]; n < int64(p.Calls)*95/100 || n > int64(p.Calls)*105/100 {
					t.Errorf("%d calls of users, the verdict has %d", n, p.Calls)
				}
				if n, want := slow[live.Users], int64(p.SlowCalls); n < want*9/10-3 || n > want*11/10+3 {
					t.Errorf("%d slow calls of users, the verdict has %d", n, want)
				}
			}
			if v.Meta(recording.MetaServer) != rec.Meta[recording.MetaServer] {
				t.Errorf("server %q", v.Meta(recording.MetaServer))
			}
		})
	}
}

// TestViewShowsWhoWaits: what the slow calls of the corpus waited for, and whose they were.
func TestViewShowsWhoWaits(t *testing.T) {
	rec := corpus.Open(t, "server-cfs-throttled")
	rec.Index()
	v := replay(rec)
	start, end := rec.Window()
	throttled, all := int64(0), int64(0)
	for _, s := range v.Slow(1 << 20) {
		parts := int64(0)
		for _, p := range s.Segments {
			parts += p.ToNs - p.FromNs
			if p.Actor == recording.Server && p.State == recording.Throttled {
				throttled += p.ToNs - p.FromNs
			}
		}
		if took := s.Call.EndNs - s.Call.IntendedNs; parts != took {
			t.Fatalf("a call of %d ns has parts of %d ns", took, parts)
		}
		all += parts
	}
	if 2*throttled < all {
		t.Fatalf("throttled for %d of %d ns", throttled, all)
	}
	callers := v.Callers()
	if len(callers) == 0 || callers[0].Slow == 0 || callers[0].Calls == 0 || callers[0].LostNs == 0 {
		t.Fatalf("%+v", callers)
	}
	slow := v.Slow(10)
	if len(slow) != 10 || slow[0].Number <= slow[9].Number || len(slow[0].Segments) == 0 {
		t.Fatalf("%+v", slow)
	}
	if len(v.Ops(start/1e9-2, end/1e9+1)) == 0 || len(v.BlindSpots()) == 0 {
		t.Error("no commands, or no blind spots")
	}
}

// TestViewIsBounded: whatever comes, what is held has bounds; subscribers that do not read hold up nobody.
func TestViewIsBounded(t *testing.T) {
	now := int64(1_800_000_000)
	v := live.New(live.Options{Clock: at(now * 1e9)})
	_, end := v.Subscribe()
	defer end()
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 20_000 {
				name := fmt.Sprintf("10.0.%d.%d:%d", i/250%250, i%250, 1024+w)
				ns := (now-5)*1e9 + int64(i)
				v.Call(recording.Call{
					Source: recording.SourceTap, Conn: name, Client: fmt.Sprintf("app%d[%d]", i, i), Op: "GET",
					IntendedNs: ns, EndNs: ns + 50e6, Node: name,
				}, make([]recording.Segment, 200)...)
				v.Sample(recording.Sample{
					Source: recording.SourceTap, Subject: name, TimeNs: ns, Value: float64(i),
					Name: recording.ErrorRepliesName(recording.Server, "GET", fmt.Sprintf("E%d", i)),
				})
				v.ConnUse(name, recording.ConnUse{Calls: int64(i)})
				v.Event(recording.Event{Kind: recording.KindBlindSpot, Detail: fmt.Sprintf(`{"what":"%d"}`, i)})
			}
		})
	}
	wg.Wait()
	if n := len(v.Slow(1 << 20)); n > 2000 {
		t.Errorf("%d slow calls are kept", n)
	}
	if n := len(v.Slow(1)[0].Segments); n > 64 {
		t.Errorf("%d segments", n)
	}
	if nodes, blind := len(v.Nodes()), len(v.BlindSpots()); nodes > 64 || blind > 256 {
		t.Errorf("%d nodes, %d blind spots", nodes, blind)
	}
}

// TestFailedCalls: error replies count by how much their counter grew, redirects do not, nor what a library asks of a
// server that cannot do it, and calls that a close left without a reply do.
func TestFailedCalls(t *testing.T) {
	now := int64(1_800_000_000)
	v := live.New(live.Options{Clock: at(now * 1e9)})
	countOf := func(second int64, op, code string, value float64) {
		v.Sample(recording.Sample{
			Source: recording.SourceTap, Subject: "a:1", TimeNs: second * 1e9, Value: value,
			Name: recording.ErrorRepliesName(recording.Server, op, code),
		})
	}
	count := func(second int64, code string, value float64) { countOf(second, "GET", code, value) }
	for _, op := range []string{"CLIENT SETINFO", "CLIENT MAINT_NO", "HELLO"} {
		countOf(now-10, op, "ERR", 3)
	}
	countOf(now-12, "HELLO", "WRONGPASS", 4)
	count(now-10, "OOM", 3)
	count(now-9, "OOM", 8)
	count(now-9, "MOVED", 100)
	v.Event(recording.Event{
		Kind: recording.KindClose, Source: recording.SourceTap, Subject: "a:1", TimeNs: (now - 9) * 1e9,
		Detail: recording.Detail(recording.ConnDetail{Side: recording.Server, Waiting: 2}),
	})
	v.Event(recording.Event{
		Kind: recording.KindClose, Source: recording.SourceTap, Subject: "a:1", TimeNs: (now - 8) * 1e9,
		Detail: recording.Detail(recording.ConnDetail{Side: recording.Server, Waiting: 2, Blocking: true}),
	})
	var failed []int64
	for _, s := range v.Seconds(now-20, now) {
		failed = append(failed, s.Failed)
	}
	if !slices.Equal(failed, []int64{4, 3, 7}) {
		t.Errorf("failed calls by second: %v", failed)
	}
}

// TestShortConnections: calls on connections that lived for less than a second are their program's, too.
func TestShortConnections(t *testing.T) {
	v := live.New(live.Options{Clock: at(100e9)})
	for i := range 3 {
		detail := recording.ConnDetail{
			Client: fmt.Sprintf("127.0.0.1:%d", 40000+i), Side: recording.Client, Comm: "redis-cli", PID: 7, Calls: 2,
		}
		v.ConnUse(detail.Client, recording.ConnUse{TimeNs: 99e9, Calls: int64(i)}) // of these none, one, two
		v.Event(recording.Event{
			TimeNs: 99e9, Source: recording.SourceTap, Subject: "127.0.0.1:6379", Kind: recording.KindOpen,
			Detail: recording.Detail(detail),
		})
		v.Event(recording.Event{
			TimeNs: 99e9, Source: recording.SourceTap, Subject: "127.0.0.1:6379", Kind: recording.KindClose,
			Detail: recording.Detail(detail),
		})
	}
	calls := int64(0)
	for _, c := range v.Callers() {
		calls += c.Calls
	}
	if calls != 6 {
		t.Errorf("%d calls, of %+v", calls, v.Callers())
	}
}

// TestOldSlowCallsAreForgotten: a slow call that is too old to be shown takes no memory.
func TestOldSlowCallsAreForgotten(t *testing.T) {
	now := int64(1_800_000_000)
	v := live.New(live.Options{Clock: at(now * 1e9)})
	slow := func(calls int, ended int64) {
		for i := range calls {
			ns := ended*1e9 + int64(i)
			v.Call(recording.Call{
				Source: recording.SourceTap, Conn: "10.0.0.1:1024", Op: "GET", Node: "10.0.0.2:6379",
				IntendedNs: ns - 50e6, EndNs: ns,
			})
		}
	}
	const old, recent = 1000, 400
	slow(old, now-int64(live.DefaultKeep.Seconds())-10)
	slow(recent, now-5)
	calls, missed := v.SlowSince(0)
	if len(calls) != recent || missed != old || len(v.Slow(1<<20)) != recent {
		t.Errorf("%d slow calls are held, %d were forgotten, %d are shown", len(calls), missed, len(v.Slow(1<<20)))
	}
}

// TestProcessIsOneCaller: all calls of a process are its own, from the first on; two processes of one interpreter are
// two callers; and the sum stays that of all calls, however many processes come and go.
func TestProcessIsOneCaller(t *testing.T) {
	v := live.New(live.Options{Clock: at(100e9)})
	process := func(pid int, program, client string, calls int64) {
		v.Snapshot(recording.Snapshot{
			Source: recording.SourceTap, Subject: recording.ProcessPrefix + strconv.Itoa(pid),
			Name: recording.SnapshotProgram,
			Body: recording.Detail(recording.Program{Comm: "python3", Name: program}),
		})
		v.Snapshot(recording.Snapshot{
			Source: recording.SourceTap, Subject: recording.ConnPrefix + client, Name: recording.SnapshotEnds,
			Body: recording.Detail(recording.ConnEnds{Node: "a:1", PID: pid, Comm: "python3"}),
		})
		v.ConnUse(client, recording.ConnUse{TimeNs: 99e9, Calls: calls})
	}
	process(7, "flood.py", "127.0.0.1:4001", 10)
	process(8, "shop.py", "127.0.0.1:4002", 20)
	process(8, "shop.py", "127.0.0.1:4003", 5)
	for i := range 2 { // another host, as the server's end counts its calls
		v.Sample(recording.Sample{
			Source: recording.SourceTap, Subject: "a:1", Name: recording.CallsFromPrefix + "10.0.0.7",
			Value: float64(3 + i),
		})
	}
	before := v.Callers()
	if len(before) != 3 || before[0].Name != "shop.py[8]" || before[0].Calls != 25 ||
		before[1].Name != "flood.py[7]" || before[2].Name != "10.0.0.7" || before[2].Calls != 4 {
		t.Fatalf("%+v", before)
	}
	const short = 5000 // processes
	for i := range short {
		d := recording.ConnDetail{
			Client: "127.0.0.1:5000", Side: recording.Client, Comm: "redis-cli", PID: 100 + i, Calls: 2,
		}
		for _, kind := range []string{recording.KindOpen, recording.KindClose} {
			v.Event(recording.Event{
				TimeNs: 99e9, Source: recording.SourceTap, Subject: "a:1", Kind: kind, Detail: recording.Detail(d),
			})
		}
	}
	now := v.Callers()
	var calls, made int64
	for _, c := range now {
		calls += c.Calls
	}
	for _, n := range live.NewCalls(before, now) {
		made += n
	}
	if calls != 39+2*short || made != 2*short || len(now) > 1024 {
		t.Errorf("%d callers made %d calls, %d of them since", len(now), calls, made)
	}
	ended := slices.IndexFunc(now, func(c live.Caller) bool { return c.Name == "redis-cli" })
	if ended < 0 || now[ended].Calls < short {
		t.Errorf("processes that ended are not one caller: %+v", now[:3])
	}
}

// TestEdges: calls of a process of this host and of another host are counted for each node, the slow ones as well, and
// each is given once.
func TestEdges(t *testing.T) {
	v := live.New(live.Options{Clock: at(100e9)})
	shop := recording.Program{Comm: "python3", Name: "shop.py", Unit: "shop.service"}
	v.Snapshot(recording.Snapshot{
		Source: recording.SourceTap, Subject: recording.ProcessPrefix + "7", Name: recording.SnapshotProgram,
		Body: recording.Detail(shop),
	})
	for client, node := range map[string]string{"127.0.0.1:4001": "a:1", "127.0.0.1:4002": "b:2"} {
		v.Event(recording.Event{
			TimeNs: 90e9, Source: recording.SourceTap, Subject: node, Kind: recording.KindOpen,
			Detail: recording.Detail(recording.ConnDetail{Client: client, Side: recording.Client, PID: 7}),
		})
		v.ConnUse(client, recording.ConnUse{TimeNs: 99e9, Calls: 10})
	}
	v.Sample(recording.Sample{
		Source: recording.SourceTap, Subject: "a:1", Name: recording.CallsFromPrefix + "10.0.0.7", Value: 4,
	})
	v.Call(recording.Call{
		Source: recording.SourceTap, Conn: "127.0.0.1:4002", Op: "GET", Node: "b:2", Client: "python3[7]",
		IntendedNs: 99e9, EndNs: 99e9 + 25e6,
	})
	want := []live.Edge{
		{Caller: "shop.py[7]", Program: shop, Node: "b:2", Calls: 10, Slow: 1, LostNs: 20e6},
		{Caller: "shop.py[7]", Program: shop, Node: "a:1", Calls: 10},
		{Caller: "10.0.0.7", Node: "a:1", Calls: 4},
	}
	if got := v.TakeEdges(); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	v.ConnUse("127.0.0.1:4001", recording.ConnUse{TimeNs: 99e9, Calls: 11})
	want = []live.Edge{{Caller: "shop.py[7]", Program: shop, Node: "a:1", Calls: 1}}
	if got := v.TakeEdges(); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}
