package account

import (
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"

	"slowpath/internal/recording"
)

// loadHistograms are the latencies of all calls of a load, by node. Its recorded calls are the slow ones and a sample,
// and say nothing of the baseline.
func loadHistograms(rec *recording.Recording) map[string]*hdrhistogram.Histogram {
	out := map[string]*hdrhistogram.Histogram{}
	for _, h := range rec.HistogramSums(recording.SourceLoad) {
		if strings.HasPrefix(h.Op, recording.LoadFromIntended+" ") {
			out[h.Node] = merge(out[h.Node], h.Sum)
		}
	}
	return out
}

// probePath names the probe's calls on one kind of connection to one node.
type probePath struct{ node, conn string }

// probeHistograms are the latencies of all calls of the probe, in a recording that was thinned: of its recorded calls
// the fast ones are missing. Nil: all calls are recorded.
func probeHistograms(rec *recording.Recording) map[probePath]*hdrhistogram.Histogram {
	if !rec.Thinned() {
		return nil
	}
	return byProbePath(rec)
}

func byProbePath(rec *recording.Recording) map[probePath]*hdrhistogram.Histogram {
	out := map[probePath]*hdrhistogram.Histogram{}
	for _, h := range rec.HistogramSums(recording.SourceProbe) {
		if conn, _, ok := strings.Cut(h.Op, " "); ok { // "kept GET"
			k := probePath{h.Node, conn}
			out[k] = merge(out[k], h.Sum)
		}
	}
	return out
}

// usual is what calls took in the time before that of the recording, which is of an incident. Empty where that is not
// known.
type usual struct {
	probe map[probePath]*hdrhistogram.Histogram
	tap   tapHistograms
}

func readUsual(rec *recording.Recording, inner map[string]bool) usual {
	before := rec.Earlier()
	if before == nil {
		return usual{}
	}
	return usual{byProbePath(before), readTapHistograms(before, inner)}
}

// fastestNs is what a path can do: the fastest call at the time of the recording or before it, or its distance, where
// no call was as fast.
func (u usual) fastestNs(p Path) int64 {
	fastest := p.MinNs
	if h := u.probe[probePath{p.Node, p.Conn}]; h != nil {
		fastest = min(fastest, h.Min())
	}
	if p.DistanceNs > 0 {
		fastest = min(fastest, p.DistanceNs)
	}
	return fastest
}

// tapHistograms are the latencies of all calls that the tap saw. Its recorded calls are slow ones, and say nothing of
// the baseline. bySide has none of nodes that only proxies call.
type tapHistograms struct {
	byOp map[opKey]*hdrhistogram.Histogram
	// of users, by the end of the connections; at the clients' end as long as their threads waited for them
	bySide map[string]*hdrhistogram.Histogram
	wire   *hdrhistogram.Histogram // the same calls from their requests on; nil: no thread waited longer
	// those of them that had a connection opened first
	dialled *hdrhistogram.Histogram
	served  map[string]*hdrhistogram.Histogram // at the servers' ends, by node
}

// opKey is a command at a node, seen from one end of its connections: recording.Client or recording.Server.
type opKey struct{ node, side, op string }

func readTapHistograms(rec *recording.Recording, inner map[string]bool) tapHistograms {
	t := tapHistograms{
		byOp: map[opKey]*hdrhistogram.Histogram{}, bySide: map[string]*hdrhistogram.Histogram{},
		served: map[string]*hdrhistogram.Histogram{},
	}
	for _, h := range rec.HistogramSums(recording.SourceTap) {
		side, op, ok := strings.Cut(h.Op, " ") // "client GET"
		if !ok {
			continue
		}
		// The tap knows the node of each; its first versions counted the calls of all nodes under the first.
		for _, k := range []opKey{{h.Node, side, op}, {"", side, op}} {
			t.byOp[k] = merge(t.byOp[k], h.Sum)
		}
		ofUsers := side != recording.Server || !Introspection(op) && !recording.Introduces(op) && !ownCalls[op]
		if ofUsers && side == recording.Server {
			t.served[h.Node] = merge(t.served[h.Node], h.Sum)
		}
		if ofUsers && !inner[h.Node] {
			t.bySide[side] = merge(t.bySide[side], h.Sum)
		}
	}
	for _, c := range rec.Calls {
		switch {
		case c.Source != recording.SourceTap || inner[c.Node]:
		case recording.AwaitsAcks(c.Op): // of commands that block, the kernel counts none
			t.count(recording.Server, c)
			t.count(recording.Client, c) // where clients of this host call, it is most likely one of them
		case c.Error == recording.NoReplyYet: // nor of those that have no reply
			t.count(c.Side, c)
		}
	}
	t.dialled = t.bySide[recording.Dialled]
	if felt := recording.FeltAtClients(t.bySide); felt != t.bySide[recording.Client] {
		t.wire, t.bySide[recording.Client] = t.bySide[recording.Client], felt
	}
	return t
}

// count adds a call to those of one end, where calls were seen there.
func (t tapHistograms) count(side string, c recording.Call) {
	if h := t.bySide[side]; h != nil {
		_ = h.RecordValue(min(c.EndNs-c.IntendedNs, h.HighestTrackableValue())) // within its bounds
	}
}

func merge(into, h *hdrhistogram.Histogram) *hdrhistogram.Histogram {
	if into == nil {
		into = hdrhistogram.New(h.LowestTrackableValue(), h.HighestTrackableValue(), int(h.SignificantFigures()))
	}
	into.Merge(h)
	return into
}

// observed are the calls from the clients' end where that was seen, else from the server's.
func (t tapHistograms) observed() *hdrhistogram.Histogram {
	if c := t.bySide[recording.Client]; c != nil {
		return c
	}
	return t.bySide[recording.Server]
}

// atClients are the users' calls at the clients' end, where most of so many were seen there.
func (t tapHistograms) atClients(calls int) *hdrhistogram.Histogram {
	if c := t.bySide[recording.Client]; c != nil && int(c.TotalCount()) >= calls-int(c.TotalCount()) {
		return c
	}
	return nil
}

// of finds the latencies of a command at one end.
func (t tapHistograms) of(node, side, op string) *hdrhistogram.Histogram {
	if h := t.byOp[opKey{node, side, op}]; h != nil {
		return h
	}
	return t.byOp[opKey{"", side, op}]
}

// users are all calls of the server's users: those of clients on this host, or where the server runs here and has
// others too, those that the server received. Of these own are slowpath's.
func (t tapHistograms) users(own int64) (h *hdrhistogram.Histogram, ofServer bool) {
	c, s := t.bySide[recording.Client], t.bySide[recording.Server]
	switch {
	case s != nil && (c == nil && s.TotalCount() > own || c != nil && s.TotalCount()-own > c.TotalCount()):
		return s, true
	case c != nil:
		return c, false
	}
	return nil, false
}

// countSlow is how many of the calls at the clients' end were slow. One that had its connection opened first takes the
// round trips of a handshake more.
func (a *latencies) countSlow(atClients *hdrhistogram.Histogram) int {
	slow := countFrom(atClients, a.thresholdNs)
	if fresh := a.freshNs(); a.tap.dialled != nil && fresh > 0 {
		slow += countFrom(a.tap.dialled, fresh) - countFrom(a.tap.dialled, a.thresholdNs)
	}
	return slow
}

// countFrom is how many calls of a histogram took at least that long.
func countFrom(h *hdrhistogram.Histogram, fromNs int64) int {
	n := int64(0)
	for _, b := range h.Distribution() {
		if b.From >= fromNs {
			n += b.Count
		}
	}
	return int(n)
}
