package join

import (
	"time"

	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
	"slowpath/internal/trace"
)

// serverCoverage knows which calls a server's recording would have if they had been slow at the server.
type serverCoverage struct {
	slowNs  int64
	sinceNs map[string]int64 // by connection: recorded from this time, by the server's clock
	untilNs int64
}

// lossCounters are counters of the tap: if one is not 0, a slow call may be missing, since its report or the
// order of calls on its connection was lost.
var lossCounters = []series.Name{
	series.TapDropped, series.TapUnreported, series.TapMerged, series.TapExcess, series.TapGarbage,
	series.TapNoBuffer, series.TapIovecs, series.TapNoMemory, series.TapThreadsFull, series.TapGaps,
	series.TapConnsFull, series.TapUnfollowed, series.TapLeftOut,
}

// newServerCoverage returns nil if any slow call may be missing, as in a packet capture one may be that could not be
// paired.
func newServerCoverage(r *recording.Recording) *serverCoverage {
	if !complete(r) || r.Used(recording.SourceCapture) {
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
			seen(c.Conn, c.EndNs) // the order of its calls was known by then, and was never lost
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
			opened[d.Client]++ // it was open before the watch
		}
	}
	for conn, n := range opened {
		if n > 1 {
			delete(k.sinceNs, conn) // its port was reused
		}
	}
	return k
}

// complete reports whether no slow call can be missing.
func complete(r *recording.Recording) bool {
	for _, of := range lossCounters {
		if n, _ := r.Of(of, "").Last(); n > 0 {
			return false
		}
	}
	ids := int64(0)
	for _, c := range r.Calls {
		ids = max(ids, c.ID)
	}
	thinned := r.Thinned() || ids != int64(len(r.Calls)) // ids have gaps
	return r.Damage == "" && r.Meta[recording.MetaDropped] == "" && r.Meta[recording.MetaEnd] != "" && !thinned
}

// isFast reports whether a call of a client took the server less than slowNs.
func (k *serverCoverage) isFast(c recording.Call, clocks clockBounds) bool {
	lo, hi, ok := clocks.at(c.IntendedNs)
	if k == nil || !ok || c.Op == "?" { // TLS: the two ends delimit calls differently
		return false
	}
	since, known := k.sinceNs[c.Conn]
	return known && c.IntendedNs+lo >= since && c.EndNs+hi <= k.untilNs
}

// boundNetwork gives the network the part of a client's wait that exceeds the server's slow threshold. The rest stays
// unexplained; it is put in the middle, since it is not known when the server had the call.
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
