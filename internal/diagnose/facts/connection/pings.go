package connection

import (
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// Bounds of tests of connections. A health check or a keepalive asks once in some seconds per connection, a test with
// each use. One test belongs to one use at least, so that more PINGs than other commands are something else: a monitor,
// a benchmark.

// Pings compares PING with the other commands of callers.
type Pings struct {
	// Count is the number of PINGs.
	Count float64
	// Others is the number of other commands.
	Others float64
	// PingNs is the time of all PINGs in nanoseconds, if each took as long as the median: what holds up a PING holds up
	// other calls, too. 0 where only the server counted.
	PingNs int64
	// OthersNs is that of the other commands.
	OthersNs int64
	// Source is where it is known from.
	Source string
}

// BorrowPings are the callers' PINGs, by what the tap saw at their end, else by commandstats; ok says that
// their number is that of a pool which tests each connection when it is borrowed.
func BorrowPings(n *facts.Node) (Pings, bool) {
	p := tapPings(n)
	if p.Count+p.Others == 0 {
		if caller.Observed(n) {
			return p, false // the server counts the PINGs of observers, too
		}
		p = countedPings(n)
	}
	// the two counters are read at different times
	return p, p.Count >= degree.Part*p.Others && degree.NearlyAll*p.Count <= p.Others &&
		p.Count >= degree.Many*n.Seconds()
}

// tapPings reads the histograms of all calls of clients on this host. Handshakes are not what a pool tests, and what
// has no name under TLS may be either.
func tapPings(n *facts.Node) Pings {
	p := Pings{Source: recording.SourceTap}
	for _, h := range n.Rec.HistogramSums(recording.SourceTap) {
		op, ok := strings.CutPrefix(h.Op, recording.Client+" ")
		if h.Node != n.Address || !ok {
			continue
		}
		count, ns := TotalOf(h.Sum)
		switch {
		case op == "PING":
			p.Count, p.PingNs = p.Count+count, p.PingNs+min(ns, int64(count)*h.Sum.ValueAtQuantile(50))
		case op != "?" && !recording.Introduces(op):
			p.Others, p.OthersNs = p.Others+count, p.OthersNs+ns
		}
	}
	return p.without(singleCalls(n)).without(p.Count * apartPings(n))
}

// without leaves out PINGs, of the mean time.
func (p Pings) without(count float64) Pings {
	left := max(p.Count-count, 0)
	p.PingNs, p.Count = int64(float64(p.PingNs)*left/max(p.Count, 1)), left
	return p
}

// singleCalls is the number of connections that were made and closed for one call. If that is a PING, as of a health
// check, it tests nothing that is used then.
func singleCalls(n *facts.Node) (count float64) {
	for _, c := range caller.Callers(n) {
		count += float64(len(c.ConnsWhere(func(k *caller.Conn) bool {
			return k.OpenNs > 0 && k.CloseNs > 0 && k.AppCalls() == 1
		})))
	}
	return count
}

// apartPings is the share of the PINGs that came on connections with nothing but PINGs, of those that were recorded one
// by one since they were slow: a health check, or a keepalive. A test comes on the connection that is used then.
func apartPings(n *facts.Node) float64 {
	pings, others := map[string]int{}, map[string]int{} // by connection
	for _, a := range n.Ledger.Slow {
		switch {
		case a.Call.Source != recording.SourceTap || a.Call.Node != n.Address:
		case a.Call.Op == "PING":
			pings[a.Call.Conn]++
		default:
			others[a.Call.Conn]++
		}
	}
	all, apart := 0, 0
	for conn, count := range pings {
		if count+others[conn] > 1 {
			all += count
			if others[conn] == 0 {
				apart += count
			}
		}
	}
	return float64(apart) / float64(max(all, 1))
}

// countedPings reads commandstats.
func countedPings(n *facts.Node) Pings {
	p := Pings{Source: recording.SourceServer}
	own := map[bool]float64{} // by whether it is a PING
	if s := n.Series(series.TotalCommandsProcessed); len(s) > 1 {
		for _, c := range n.Rec.Calls {
			if c.Source == recording.SourceProbe && c.Node == n.Address && c.StartNs >= s[0].TimeNs &&
				c.StartNs < s[len(s)-1].TimeNs {
				own[c.Op == "PING"]++
			}
		}
	}
	p.Count = max(n.Growth(series.CommandCalls("ping"))-own[true], 0)
	for _, command := range n.CountedCommands() {
		if facts.IsDataCommand(command) {
			p.Others += n.Growth(series.CommandCalls(command))
		}
	}
	p.Others = max(p.Others-own[false], 0)
	return p.without(n.Growth(series.TotalConnectionsReceived)) // each may have been opened for its PING
}

// TotalOf is the number of calls in a histogram, and their time in nanoseconds.
func TotalOf(h *hdrhistogram.Histogram) (count float64, ns int64) {
	return float64(h.TotalCount()), int64(h.Mean() * float64(h.TotalCount()))
}
