//go:build linux

package tap

import (
	"testing"

	"pgregory.net/rapid"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
	"slowpath/internal/source/host"
)

// partition fails unless segments are disjoint, none is empty, and they fill [from, to) without a gap.
func partition(t *rapid.T, segs []recording.Segment, from, to int64) {
	at := from
	for _, s := range segs {
		if s.FromNs != at || s.ToNs <= s.FromNs {
			t.Fatalf("segment %+v after %d: %+v", s, at, segs)
		}
		at = s.ToNs
	}
	if at != to {
		t.Fatalf("segments end at %d, the call at %d: %+v", at, to, segs)
	}
}

// anyCall draws an event such as the programs could make: times that may be out of order by a race, clocks that may
// have been read torn.
func anyCall(t *rapid.T, role kernelRole) *kernelCallEvent {
	e := &kernelCallEvent{Role: role, Tid: 7}
	at := rapid.Uint64Range(1e9, 2e9).Draw(t, "start")
	for i := range e.At {
		e.At[i] = at
		at += rapid.Uint64Range(0, 20e6).Draw(t, "length")
		for j := range e.Clk[i].Ns {
			if i > 0 {
				e.Clk[i].Ns[j] = e.Clk[i-1].Ns[j]
			}
			e.Clk[i].Ns[j] += rapid.Uint64Range(0, 8e6).Draw(t, "clock")
		}
	}
	if i := rapid.IntRange(0, 8).Draw(t, "race"); i > 0 && i < 4 {
		e.At[i] -= min(e.At[i]-e.At[0], rapid.Uint64Range(0, 5e6).Draw(t, "by")) // never before the begin
	}
	e.At[3] = max(e.At[0], e.At[1], e.At[2], e.At[3])
	return e
}

func anyRecorder(t *rapid.T) *recorder {
	b := newRecorder(Options{Clock: clock.New(), Files: host.Root{}}, func(ns uint64) int64 { return int64(ns) },
		func(uint16) nodeOp { return nodeOp{name: "GET"} })
	h := b.threadLog(7)
	for range rapid.IntRange(0, 6).Draw(t, "intervals") {
		from := rapid.Int64Range(1e9, 2e9+60e6).Draw(t, "from")
		d := interval{span: span{from, from + rapid.Int64Range(1, 30e6).Draw(t, "ns")}, culprit: "x"}
		if state := rapid.IntRange(0, int(asleep)).Draw(t, "state"); state < int(asleep) {
			d.state = waitKinds[state]
			h.waits = appendBounded(h.waits, d)
		} else {
			d.slept = rapid.Int64Range(0, d.to-d.from).Draw(t, "slept")
			h.activities = appendBounded(h.activities, d)
		}
	}
	return b
}

// TestSegmentsAddUp: whatever the programs report, the segments of a call are a partition of its time.
func TestSegmentsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := anyRecorder(t)
		e := anyCall(t, roleServer)
		partition(t, b.serverSegments(e), int64(e.At[0]), int64(e.At[3]))
	})
	rapid.Check(t, func(t *rapid.T) {
		b := anyRecorder(t)
		e := anyCall(t, roleClient)
		k := callKey{seq: 1}
		c := recording.Call{StartNs: int64(e.At[0]), IntendedNs: int64(e.At[0]), EndNs: int64(e.At[3])}
		switch rapid.IntRange(0, 2).Draw(t, "server's view") {
		case 1:
			s := anyCall(t, roleServer)
			b.serverViews[k] = &serverView{segs: b.serverSegments(s)}
		case 2:
			s := anyCall(t, roleServer)
			e.Flags |= flagPaired
			e.Pair = kernelPair{
				Arrived: s.At[0], Read: s.At[1], Done: s.At[2], Send: s.At[3], ClkArrived: s.Clk[0],
				ClkRead: s.Clk[1], ClkDone: s.Clk[2], ClkSend: s.Clk[3], Tid: 7, Split: rapid.Uint32Range(0, 1).Draw(t,
					"split"),
			}
		}
		b.retransmissions[k.client] = []span{{
			int64(e.At[0]) + rapid.Int64Range(-5e6, 30e6).Draw(t, "resent"),
			int64(e.At[3]) -
				rapid.Int64Range(-5e6, 5e6).Draw(t, "until"),
		}}
		_, segs := b.joined(e, k, c)
		partition(t, segs, c.StartNs, c.EndNs)
	})
}

// TestBuckets: the histogram's steps hold the times that fall into them.
func TestBuckets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ns := rapid.Int64Range(0, 1<<36-1).Draw(t, "ns")
		if middle := bucketNs(bucketOf(ns)); middle > ns+ns/16+1 || middle < ns-ns/16-1 {
			t.Fatalf("%d ns stands for %d", ns, middle)
		}
	})
}

// TestStoppedBeforeFirstRead: a server is stopped when the first request of a connection comes. Its clock of then is
// not known, but that it was stopped is.
func TestStoppedBeforeFirstRead(t *testing.T) {
	r := newRecorder(Options{}, func(ns uint64) int64 { return int64(ns) }, func(uint16) nodeOp { return nodeOp{} })
	r.threadLog(7).waits = []interval{{span: span{90e6, 120e6}, state: waitKinds[frozen]}}
	segs := r.split(stage{
		span: span{100e6, 125e6}, tid: 7, actor: recording.Server, running: recording.Busy,
		sleeping: recording.Unexplained,
	})
	if len(segs) != 2 || segs[0].State != recording.Frozen || segs[0].ToNs != 120e6 || segs[1].State != recording.Busy {
		t.Errorf("%+v", segs)
	}
}
