package recording

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// TestOpenWithinBounds: of a recording with more rows than are judged one part is read, which stands for all; the
// slowest calls are part of it, connections are whole, what happened while a call that is read was slow is there, and
// what is rare, too. What is left out is counted.
func TestOpenWithinBounds(t *testing.T) {
	const start, calls, conns = int64(1_800_000_000e9), 2000, 1500
	path := filepath.Join(t.TempDir(), "x.slowpath")
	w, err := Create(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	w.SetMeta(MetaStart, fmt.Sprint(start))
	w.SetMeta(MetaEnd, fmt.Sprint(start+int64(1000e9)))
	for i := range int64(calls) {
		at := start + i*100e6
		ns := 6_000_000 + i%7
		if i == 1321 {
			ns = 50e6
		}
		c := Call{
			Source: SourceTap, Conn: "10.0.0.2:4000", Op: "GET", IntendedNs: at, StartNs: at, EndNs: at + ns, Slot: -1,
		}
		w.Call(c, Segment{Actor: Server, State: Busy, FromNs: at, ToNs: at + ns/2},
			Segment{Actor: Server, State: Exec, FromNs: at + ns/2, ToNs: at + ns})
		w.Event(Event{TimeNs: at, DurationNs: ns, Source: SourceTap, Subject: "a:1", Kind: KindActivity, Detail: "{}"})
		c = Call{Source: SourceProbe, Conn: "fresh", Op: "PING", IntendedNs: at, StartNs: at, EndNs: at + 1e5, Slot: -1}
		w.Call(c, Segment{Actor: Client, State: Dial, FromNs: at, ToNs: at + 1e4})
		if i%1000 == 0 {
			_ = w.Flush()
		}
	}
	for i := range int64(conns) {
		d := ConnDetail{Client: fmt.Sprintf("10.0.0.2:%d", 10_000+2*i), Side: Client}
		w.Event(Event{TimeNs: start + i, Source: SourceTap, Subject: "a:1", Kind: KindOpen, Detail: Detail(d)})
		w.Event(Event{TimeNs: start + i, Source: SourceTap, Subject: "a:1", Kind: KindClose, Detail: Detail(d)})
	}
	for i := range int64(20) {
		h := hdrhistogram.New(1000, 3600e9, 2)
		_ = h.RecordValues(6e6, 100)
		hdr, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
		if err != nil {
			t.Fatal(err)
		}
		for _, op := range []string{"client GET", "client SET"} {
			w.Histogram(Histogram{Second: start/1e9 + i, Source: SourceTap, Node: "a:1", Op: op, HDR: hdr})
		}
	}
	w.Event(Event{TimeNs: start, Source: SourceServer, Subject: "a:1", Kind: KindRestart, Detail: "{}"})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := openWithin(path, &bounds{calls: 500, events: 500, conns: 500, histograms: 10}, nil)
	if err != nil {
		t.Fatal(err)
	}
	checkCalls(t, r, calls)
	checkEvents(t, r, conns)
	for _, one := range []*Recording{r, r.Without(SourceProbe)} {
		sums := one.HistogramSums(SourceTap)
		if n := len(one.Histograms); n != 20 || len(sums) != 2 || sums[1].Op != "client SET" ||
			sums[1].Sum.TotalCount() != 2000 {
			t.Errorf("%d sums of histograms, %d seconds", len(sums), len(one.Histograms))
		}
	}
	if sums := r.Without(SourceTap).HistogramSums(SourceTap); len(sums) != 0 {
		t.Errorf("without the tap: %d sums of histograms", len(sums))
	}
	whole, err := OpenToJudge(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(whole.Calls); n != 2*calls || whole.EventCount() != calls+2*conns+1 || whole.Thinned() {
		t.Errorf("a recording below the bounds: %d calls, %d events", n, whole.EventCount())
	}
}

func checkCalls(t *testing.T, r *Recording, all int) {
	t.Helper()
	var users, probes, stand, slowest int
	for _, c := range r.Calls {
		if c.Source == SourceProbe {
			if probes++; len(r.SegmentsOf(c.ID)) != 1 {
				t.Fatalf("segments of %+v: %+v", c, r.SegmentsOf(c.ID))
			}
			continue
		}
		users++
		stand += r.StandsFor(c)
		if c.EndNs-c.IntendedNs == 50e6 {
			slowest++
			if r.StandsFor(c) != 1 {
				t.Errorf("the slowest call stands for %d", r.StandsFor(c))
			}
		}
		if segs := r.SegmentsOf(c.ID); len(segs) != 2 || segs[0].FromNs != c.IntendedNs || segs[1].ToNs != c.EndNs {
			t.Fatalf("segments of %+v: %+v", c, segs)
		}
		if !slices.ContainsFunc(r.EventsOf(SourceTap, "a:1", KindActivity), func(e Event) bool {
			return e.TimeNs == c.IntendedNs
		}) {
			t.Fatalf("what happened meanwhile is missing: %+v", c)
		}
	}
	if slowest != 1 || users > 550 || users < 250 || probes > 550 || probes < 250 {
		t.Errorf("%d calls, %d of the slowest, %d of the probe", users, slowest, probes)
	}
	if stand < all*8/10 || stand > all*12/10 {
		t.Errorf("the calls stand for %d, not about %d", stand, all)
	}
}

func checkEvents(t *testing.T, r *Recording, all int) {
	t.Helper()
	open, closed := slices.Collect(r.Conns("a:1", KindOpen)), slices.Collect(r.Conns("a:1", KindClose))
	if len(open) == 0 || len(open) > all/2 || len(open) != len(closed) {
		t.Fatalf("%d open, %d close", len(open), len(closed))
	}
	for i := range open {
		if open[i].ConnDetail != closed[i].ConnDetail {
			t.Fatalf("%+v is not whole", open[i])
		}
	}
	if len(r.EventsOf(SourceServer, "a:1", KindRestart)) != 1 {
		t.Error("the restart is missing")
	}
	var said []string
	for _, e := range r.EventsOf(SourceRecording, SubjectSelf, KindUnseen) {
		u := DetailOf[Unseen](e)
		said = append(said, u.What)
		if u.Counted == (u.What == "connections one by one") || u.Share() < 0.2 || u.Share() > 0.95 {
			t.Errorf("%+v", u)
		}
	}
	want := "slow calls one by one; calls of the probe one by one; events one by one (work); connections one by one"
	if got := strings.Join(said, "; "); got != want {
		t.Errorf("said: %s\nwant: %s", got, want)
	}
}
