package join

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"slowpath/internal/recording"
)

// world is a set of calls with their true times by one clock, and what two hosts would have recorded of them, each by
// its own clock.
type world struct {
	server, client *recording.Recording
	truth          map[uint32]trip
	n              uint32
	offset         int64 // of the last call
}

// trip is the parts of a call's time, in nanoseconds.
type trip struct{ begin, out, served, back, read int64 }

func newWorld() *world {
	return &world{recording.New(), recording.New(), map[uint32]trip{}, 0, 0}
}

// call adds a call whose server's clock is ahead of the client's by offset.
func (w *world) call(t trip, offset int64) {
	w.n++
	w.offset = offset
	w.truth[w.n] = t
	arrived := t.begin + t.out
	sent := arrived + t.served
	has := sent + t.back
	c := recording.Call{
		Source: recording.SourceTap, Conn: "10.0.0.2:4000", Op: "GET", RequestBytes: 30,
		Node: "redis:6379", Side: recording.Client, Client: "app[7]", Seq: w.n,
		IntendedNs: t.begin, StartNs: t.begin, EndNs: has + t.read,
	}
	seg := func(actor, state string, from, to int64) (out []recording.Segment) {
		if to > from {
			out = append(out, recording.Segment{Actor: actor, State: state, FromNs: from, ToNs: to})
		}
		return out
	}
	send := t.begin + t.out/4
	w.client.Call(c, slices.Concat(seg(recording.Client, recording.Send, t.begin, send), seg(recording.Nobody,
		recording.Unexplained, send, has),
		seg(recording.Client, recording.Receive, has, c.EndNs))...)
	c.Side, c.Node, c.Client = recording.Server, "127.0.0.1:6379", ""
	c.IntendedNs, c.StartNs, c.EndNs = arrived+offset, arrived+offset, sent+offset
	w.server.Call(c, seg(recording.Server, recording.Exec, c.IntendedNs, c.EndNs)...)
}

// anyWorld draws calls whose clocks are hours apart and drift by no more than two kernels may slew them.
func anyWorld(t *rapid.T) *world {
	w := newWorld()
	offset := rapid.Int64Range(-12*3600e9, 12*3600e9).Draw(t, "offset")
	ppm := rapid.Int64Range(-900, 900).Draw(t, "drift")
	at := int64(1e18)
	for range rapid.IntRange(1, 40).Draw(t, "calls") {
		at += rapid.Int64Range(0, 20e9).Draw(t, "pause")
		part := func(name string) int64 { return rapid.Int64Range(0, 50e6).Draw(t, name) }
		one := trip{at, part("out"), part("served"), part("back"), part("read")}
		w.call(one, offset+(at-1e18)*ppm/1e6)
		at += one.out + one.served + one.back + one.read
	}
	return w
}

// in adds up a call's time in some states; without states, in any.
func in(segs []recording.Segment, actor string, states ...string) (ns int64) {
	for _, s := range segs {
		if s.Actor == actor && (len(states) == 0 || slices.Contains(states, s.State)) {
			ns += s.ToNs - s.FromNs
		}
	}
	return ns
}

// TestNetworkShare: whatever the clocks show, the network's share of each call is the client's wait minus the server's
// time, the segments are a partition of the call, and what is called out or back is right.
func TestNetworkShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := anyWorld(t)
		calls := int(w.n)
		recs := []*recording.Recording{w.client, w.server}
		if rapid.Bool().Draw(t, "order") {
			slices.Reverse(recs)
		}
		rec, results, err := All(recs, true)
		if err != nil {
			t.Fatal(err)
		}
		if r := results[0]; r.Joined != calls || r.Unmatched+r.Ambiguous+r.Contradicted+r.RejectedBounds != 0 ||
			r.ClockUnknown ||
			len(rec.Calls) != calls {
			t.Fatalf("%+v of %d calls", r, calls)
		}
		for _, c := range rec.Calls {
			segs, truth := rec.SegmentsOf(c.ID), w.truth[c.Seq]
			at := c.IntendedNs
			for _, s := range segs {
				if s.FromNs != at || s.ToNs <= at {
					t.Fatalf("no partition: %+v of %+v", segs, c)
				}
				at = s.ToNs
			}
			if at != c.EndNs || c.EndNs-c.IntendedNs != truth.out+truth.served+truth.back+truth.read ||
				c.Side != "both" || c.Client != "app[7]" || c.Node != "127.0.0.1:6379" {
				t.Fatalf("%+v, %+v", c, truth)
			}
			send := in(segs, recording.Client, recording.Send)
			if share := in(segs, recording.Network) + send; share != truth.out+truth.back ||
				in(segs, recording.Server) != truth.served || in(segs, recording.Client,
				recording.Receive) != truth.read {
				t.Fatalf("the network has %d of %+v: %+v", share, truth, segs)
			}
			if in(segs, recording.Network, recording.Out) > truth.out || in(segs, recording.Network,
				recording.Back) > truth.back {
				t.Fatalf("more certain than true: %+v, %+v", segs, truth)
			}
		}
	})
}

// TestAnyRows: recordings may come from elsewhere. Whatever they contain, the segments of a joined call are a partition
// of it.
func TestAnyRows(t *testing.T) {
	states := []string{
		recording.Exec, recording.Busy, recording.Unexplained, recording.Retransmit, recording.Send,
		recording.Out,
	}
	actors := []string{recording.Server, recording.Client, recording.Network, recording.Nobody}
	row := func(t *rapid.T, r *recording.Recording, side string, ns int64) {
		from := rapid.Int64Range(-100, 100).Draw(t, "from")
		c := recording.Call{
			Source: recording.SourceTap, Conn: "c", Op: "GET", Side: side, Seq: 1, IntendedNs: from,
			StartNs: from, EndNs: from + ns,
		}
		var segs []recording.Segment
		for range rapid.IntRange(0, 5).Draw(t, "segments") {
			s := recording.Segment{
				Actor: rapid.SampledFrom(actors).Draw(t, "actor"),
				State: rapid.SampledFrom(states).Draw(t, "state"), FromNs: from + rapid.Int64Range(-20, 120).Draw(t,
					"begin"),
			}
			s.ToNs = s.FromNs + rapid.Int64Range(-5, 80).Draw(t, "ns")
			segs = append(segs, s)
		}
		r.Call(c, segs...)
	}
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		ns := rapid.Int64Range(0, 100).Draw(t, "served")
		row(t, w.server, recording.Server, ns)
		row(t, w.client, recording.Client, ns+rapid.Int64Range(0, 50).Draw(t, "more"))
		w.server.Event(recording.Event{
			TimeNs:     rapid.Int64Range(-100, 200).Draw(t, "resent"),
			DurationNs: rapid.Int64Range(0, 50).Draw(t, "for"), Source: recording.SourceTap,
			Kind: recording.KindRetransmit, Detail: recording.Detail(recording.RetransmitDetail{Client: "c"}),
		})
		rec, _, err := All([]*recording.Recording{w.server, w.client}, false)
		if err != nil {
			t.Fatal(err)
		}
		c := rec.Calls[0]
		at := c.IntendedNs
		for _, s := range rec.SegmentsOf(c.ID) {
			if s.FromNs != at || s.ToNs <= at {
				t.Fatalf("%+v of %+v", rec.SegmentsOf(c.ID), c)
			}
			at = s.ToNs
		}
		if at != c.EndNs {
			t.Fatalf("%+v of %+v", rec.SegmentsOf(c.ID), c)
		}
	})
}

// TestClockThatWasSet: a clock that jumps makes the calls contradict each other. Their network shares stay right, but
// out and back are not told apart.
func TestClockThatWasSet(t *testing.T) {
	w := newWorld()
	for i := range int64(40) {
		offset := int64(3600e9)
		if i >= 20 {
			offset += 500e6
		}
		w.call(trip{i * 1e9, 1e6, 5e6, 2e6, 1e5}, offset)
	}
	w.client.Event(recording.Event{
		TimeNs: 1, DurationNs: 5, Source: recording.SourceTap, Subject: "process:7",
		Kind: recording.KindRunQueue,
	})
	rec, results, err := All([]*recording.Recording{w.server, w.client}, false)
	if err != nil || !results[0].ClockUnknown {
		t.Fatalf("%+v, %v", results, err)
	}
	for _, c := range rec.Calls {
		segs := rec.SegmentsOf(c.ID)
		if in(segs, recording.Network, recording.Way)+in(segs, recording.Client, recording.Send) != 3e6 {
			t.Errorf("%+v", segs)
		}
	}
	if len(rec.Events) != 0 {
		t.Errorf("an event of the client's host was shifted by an unknown time: %+v", rec.Events)
	}
	if b := results[0].BlindSpots("app.slowpath"); len(b) != 1 || !strings.Contains(b[0].Why, "contradict") {
		t.Errorf("%+v", b)
	}
}

// TestLateSend: one send that was recorded late does not spoil the clock bounds of the other calls.
func TestLateSend(t *testing.T) {
	w := newWorld()
	for i := range int64(40) {
		w.call(trip{i * 1e9, 1e6, 5e6, 1e6, 30e6}, 0)
	}
	late := &w.server.Calls[10] // by 20 ms: the client has read for as long
	late.EndNs += 20e6
	_, results, err := All([]*recording.Recording{w.server, w.client}, false)
	if r := results[0]; err != nil || r.ClockUnknown || r.Joined != 40 || r.OffsetErrorNs > 1e6+maxSendDelayNs ||
		r.OffsetNs < -1e6 ||
		r.OffsetNs > 1e6 {
		t.Errorf("%+v, %v", results, err)
	}
}

// TestNotJoined: calls without exactly one counterpart are not joined, but counted.
func TestNotJoined(t *testing.T) {
	w := newWorld()
	for i := range int64(8) {
		w.call(trip{i * 1e9, 1e6, 5e6, 2e6, 1e5}, 7e12)
	}
	c, s := w.client, w.server
	c.Calls[1].Seq = 100                                            // not slow at the server
	c.Calls[2].Conn = "192.0.2.1:1"                                 // NAT
	s.Calls[3].RequestBytes++                                       // another request
	s.Calls[4].EndNs += 1e12                                        // longer than its client waited
	c.Calls[6].Seq, s.Calls[6].Seq = c.Calls[5].Seq, s.Calls[5].Seq // a pipeline
	for _, alone := range []bool{false, true} {
		rec, results, err := All([]*recording.Recording{clone(c), clone(s)}, alone)
		if err != nil {
			t.Fatal(err)
		}
		r := results[0]
		if r.Joined != 2 || r.Unmatched != 2 || r.UnknownConn != 1 || r.Ambiguous != 2 || r.Contradicted != 2 ||
			r.ClockUnknown {
			t.Errorf("%+v", r)
		}
		both, clients := 0, 0
		for _, call := range rec.Calls {
			switch call.Side {
			case "both":
				both++
			case recording.Client:
				clients++
				i := slices.IndexFunc(c.Calls, func(o recording.Call) bool { return o.Seq == call.Seq })
				if d := call.IntendedNs - c.Calls[i].IntendedNs - 7e12; d < -2e6 || d > 2e6 {
					t.Errorf("an unmatched call is %d ns off", d)
				}
			}
		}
		if both != 2 || clients != map[bool]int{true: 2}[alone] {
			t.Errorf("%d joined, %d of clients", both, clients)
		}
		if n := len(r.BlindSpots("app.slowpath")); n != 4 {
			t.Errorf("%d blind spots: %+v", n, r.BlindSpots("app.slowpath"))
		}
	}
}

func clone(r *recording.Recording) *recording.Recording {
	out := recording.New()
	for _, c := range r.Calls {
		out.Call(c, r.SegmentsOf(c.ID)...)
	}
	for _, e := range r.Events {
		out.Event(e)
	}
	return out
}

// TestNothingToJoin: each reason has its own error, which ends in what to do.
func TestNothingToJoin(t *testing.T) {
	same := func() *world { w := newWorld(); w.call(trip{1e9, 1e6, 5e6, 2e6, 1e5}, 0); return w }
	for _, c := range []struct {
		name   string
		spoil  func(*world)
		reason error
	}{
		{"old", func(w *world) { w.client.Calls[0].Seq = 0 }, ErrNoSequence},
		{"no tap", func(w *world) { w.server.Calls = nil }, ErrNoSequence},
		{"one end", func(w *world) { w.server.Calls[0].Side = recording.Client }, ErrNoServerEnd},
		{"nothing slow there", func(w *world) {
			w.server.Calls = nil
			w.server.SetMeta(recording.MetaSource+recording.SourceTap,
				recording.Detail(recording.SourceStatus{Name: recording.SourceTap, Used: true}))
			w.server.Event(recording.Event{
				Source: recording.SourceTap, Kind: recording.KindOpen,
				Detail: recording.Detail(recording.ConnDetail{Client: "10.0.0.2:4000", Side: recording.Server}),
			})
		}, ErrNoCommonCall},
		{"NAT", func(w *world) { w.server.Calls[0].Conn = "192.0.2.1:1" }, ErrNAT},
		{"quick there", func(w *world) { w.server.Calls[0].Seq = 99 }, ErrNoCommonCall},
		{"quick there, in a pool", func(w *world) {
			w.server.Calls[0].Conn = "192.0.2.1:1"
			w.server.Snapshot(recording.Snapshot{
				Source: recording.SourceTap, Subject: "conn:10.0.0.2:4000",
				Name: recording.SnapshotServed,
			})
		}, ErrNoCommonCall},
		{"quick there, by its connection", func(w *world) {
			w.server.Calls[0].Conn = "192.0.2.1:1"
			w.server.Event(recording.Event{
				Source: recording.SourceTap, Kind: recording.KindOpen,
				Detail: recording.Detail(recording.ConnDetail{Client: "10.0.0.2:4000", Side: recording.Server}),
			})
		}, ErrNoCommonCall},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := same()
			c.spoil(w)
			if _, _, err := All([]*recording.Recording{w.client, w.server}, true); !errors.Is(err, c.reason) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestSeveralClients: the recordings of two clients' hosts are joined into that of one server, in any order.
func TestSeveralClients(t *testing.T) {
	w := newWorld()
	for i := range int64(6) {
		w.call(trip{i * 1e9, 1e6, 5e6, 2e6, 1e5}, 1e15)
	}
	other := recording.New()
	for i := range w.client.Calls {
		if i >= 3 {
			c := w.client.Calls[i]
			c.Conn = fmt.Sprintf("10.0.0.3:%d", i)
			w.server.Calls[i].Conn = c.Conn
			other.Call(c, w.client.SegmentsOf(c.ID)...)
		}
	}
	w.client.Calls = w.client.Calls[:3]
	rec, results, err := All([]*recording.Recording{w.client, w.server, other}, false)
	if err != nil || len(results) != 2 || results[0].Joined != 3 || results[1].Joined != 3 || results[1].Index != 2 {
		t.Fatalf("%+v, %v", results, err)
	}
	for _, c := range rec.Calls {
		if c.Side != "both" {
			t.Errorf("%+v", c)
		}
	}
}
