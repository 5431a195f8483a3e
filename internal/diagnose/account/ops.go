package account

import (
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"

	"slowpath/internal/recording"
)

// ops are the latencies of all calls that the kernel source saw, by end and command: "client GET". The recorded ones
// are slow, and say nothing of what is usual.
type ops struct {
	byOp map[opKey]*hdrhistogram.Histogram
	all  map[string]*hdrhistogram.Histogram // by end
}

type opKey struct{ node, side, op string }

func readOps(rec *recording.Recording) ops {
	o := ops{map[opKey]*hdrhistogram.Histogram{}, map[string]*hdrhistogram.Histogram{}}
	for _, h := range rec.Histograms {
		side, op, ok := strings.Cut(h.Op, " ")
		if h.Source != recording.SourceTap || !ok {
			continue
		}
		one, err := hdrhistogram.Decode(h.HDR)
		if err != nil {
			continue // a damaged row is as good as none
		}
		// The kernel source knows the node of each; its first versions had all of several nodes under the first.
		for _, k := range []opKey{{h.Node, side, op}, {"", side, op}} {
			o.byOp[k] = merge(o.byOp[k], one)
		}
		if side == recording.Client || !Introspection(op) && !greets[op] {
			o.all[side] = merge(o.all[side], one)
		}
	}
	return o
}

// greets are commands by which connections introduce themselves, slowpath's own among them, and the probe's PING.
var greets = map[string]bool{
	"PING": true, "CLIENT SETNAME": true, "CLIENT SETINFO": true, "CLIENT LIST": true,
	"HELLO": true, "AUTH": true, "SELECT": true, "CLUSTER INFO": true,
}

func merge(into, h *hdrhistogram.Histogram) *hdrhistogram.Histogram {
	if into == nil {
		into = hdrhistogram.New(h.LowestTrackableValue(), h.HighestTrackableValue(), int(h.SignificantFigures()))
	}
	into.Merge(h)
	return into
}

// seen are the calls from the clients' end where that was seen, else from the server's.
func (o ops) seen() *hdrhistogram.Histogram {
	if c := o.all[recording.Client]; c != nil {
		return c
	}
	return o.all[recording.Server]
}

// of finds the latencies of a command at one end.
func (o ops) of(node, side, op string) *hdrhistogram.Histogram {
	if h := o.byOp[opKey{node, side, op}]; h != nil {
		return h
	}
	return o.byOp[opKey{"", side, op}]
}

// users are all calls of the server's users: those of clients on this host, or where the server runs here and has
// others too, those that the server got. Of these own are the probe's.
func (o ops) users(own int64) (h *hdrhistogram.Histogram, ofServer bool) {
	c, s := o.all[recording.Client], o.all[recording.Server]
	switch {
	case s != nil && (c == nil && s.TotalCount() > own || c != nil && s.TotalCount()-own > c.TotalCount()):
		return s, true
	case c != nil:
		return c, false
	}
	return nil, false
}

// seenFrom is the end from which the latencies of a call of the kernel source are counted.
func seenFrom(c recording.Call) string {
	if c.Side == recording.Server {
		return recording.Server
	}
	return recording.Client
}

// slowOf counts the calls of a histogram from a bound on.
func slowOf(h *hdrhistogram.Histogram, fromNs int64) int {
	n := int64(0)
	for _, b := range h.Distribution() {
		if b.From >= fromNs {
			n += b.Count
		}
	}
	return int(n)
}

// usualOfOp is the median of a command at that end, or where that is slow, the fastest call of all commands: what the
// path can do.
func (l *Ledger) usualOfOp(c recording.Call) int64 {
	side := seenFrom(c)
	if h := l.ops.of(c.Node, side, c.Op); h != nil {
		if p50 := h.ValueAtQuantile(50); p50 < l.ThresholdNs {
			return p50
		}
	}
	if all := l.ops.all[side]; all != nil {
		return all.Min()
	}
	return 0
}
