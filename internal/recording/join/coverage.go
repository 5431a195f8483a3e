package join

import (
	"time"

	"slowpath/internal/recording"
	"slowpath/internal/trace"
)

// keeper knows for which calls a recording of a server would have the server's end, had it been slow there.
type serverCoverage struct {
	slowNs  int64
	sinceNs map[string]int64 // by connection, from when on; in the server's time
	untilNs int64
}

// losses are the counters of the kernel source that tell that a slow call may be missing: its report was lost or not
// made, or the order of calls on its connection was.
var lossCounters = []string{
	"tap.dropped", "tap.unreported", "tap.merged", "tap.excess", "tap.garbage", "tap.no_buffer",
	"tap.iovecs", "tap.no_memory", "tap.threads_full",
}

// newKeeper gives nil where anything may be missing.
func newServerCoverage(r *recording.Recording) *serverCoverage {
	for _, name := range lossCounters {
		if n, _ := r.Series(recording.SourceTap, recording.SubjectSelf, name).Last(); n > 0 {
			return nil
		}
	}
	ids := int64(0)
	for _, c := range r.Calls {
		ids = max(ids, c.ID)
	}
	// thinned: ids have gaps
	if r.Meta[recording.MetaDropped] != "" || r.Meta[recording.MetaEnd] == "" || ids != int64(len(r.Calls)) {
		return nil
	}
	k := &serverCoverage{slowNs: int64(trace.SlowOf(r) / time.Nanosecond), sinceNs: map[string]int64{}}
	_, k.untilNs = r.Window()
	seen := func(conn string, ns int64) {
		if first, ok := k.sinceNs[conn]; !ok || ns < first {
			k.sinceNs[conn] = ns
		}
	}
	for _, c := range r.Calls {
		if c.Source == recording.SourceTap && c.Side == recording.Server {
			seen(c.Conn, c.EndNs) // its order was known by then, and was never lost
		}
	}
	for conn, ns := range servedConns(r) {
		seen(conn, ns)
	}
	opened := map[string]int{}
	for _, e := range r.Events {
		if e.Source != recording.SourceTap || e.Kind != recording.KindOpen && e.Kind != recording.KindClose {
			continue
		}
		d := recording.DetailOf[recording.ConnDetail](e)
		if d.Side != recording.Server {
			continue
		}
		if e.Kind == recording.KindOpen {
			seen(d.Client, e.TimeNs)
			opened[d.Client]++
		} else if d.AgeNs == 0 {
			opened[d.Client]++ // one that was there before
		}
	}
	for conn, n := range opened {
		if n > 1 {
			delete(k.sinceNs, conn) // its port was used again
		}
	}
	return k
}

// quick reports whether the server had a call of a client for less than slowNs.
func (k *serverCoverage) isFast(c recording.Call, clocks clockBounds) bool {
	lo, hi, ok := clocks.at(c.IntendedNs)
	if k == nil || !ok || c.Op == "?" { // TLS: what is a call differs between the ends
		return false
	}
	since, known := k.sinceNs[c.Conn]
	return known && c.IntendedNs+lo >= since && c.EndNs+hi <= k.untilNs
}

// partly gives the network what a client waited beyond what the server can have had of a quick call; where in it the
// server's part was is not known, it stands in the middle.
func (k *serverCoverage) boundNetwork(c recording.Call, segs []recording.Segment) []recording.Segment {
	var out segmentList
	for _, s := range partition(segs, c.IntendedNs, c.EndNs) {
		rest := s.ToNs - s.FromNs - k.slowNs
		if s.Actor != recording.Nobody || rest <= 0 {
			out.addSegment(s)
			continue
		}
		out.add(recording.Network, recording.Way, s.FromNs, s.FromNs+rest/2)
		out.add(recording.Nobody, recording.Unexplained, s.FromNs+rest/2, s.ToNs-(rest-rest/2))
		out.add(recording.Network, recording.Way, s.ToNs-(rest-rest/2), s.ToNs)
	}
	return out
}
