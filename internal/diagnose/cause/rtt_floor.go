package cause

import (
	"fmt"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
)

// rttFloor: the way to the server takes long, each time the same.
var rttFloor = Cause{
	ID: "rtt-floor",
	Title: "The path itself takes the time: every call is equally slow, and the server has next to nothing to do " +
		"with it",
	Layer: "network",
	Needs: Needs{
		T0: "the fastest call takes as long as the median, a millisecond and more, while the server's own time is " +
			"microseconds",
		T1: "the main thread asleep most of the time",
		T2: "the clients' own calls take as long in the median, while the server has each of them for microseconds; " +
			"the best round trip of clients on other hosts",
	},
	After:   []string{"n-plus-one-roundtrips"}, // that the round trips are so many can be fixed, their length seldom
	Explain: explainFloor,
}

const (
	usualRTTNs   = int64(0.5e6)
	throughTCP   = 0.5 // part of the floor that a TCP connect takes as well, where it is distance
	blockedOften = 0.1 // of the time in a system call, which delays every call of the loop
)

func explainFloor(n *facts.Node) *Finding {
	kept, ok := n.Ledger.Path(n.Address, "kept")
	if !ok || kept.Calls < floorCalls || kept.MinNs < floorNs || kept.P50Ns > floorSteady*kept.MinNs {
		return nil
	}
	workNs := n.ProbeWorkNs()
	d, known := n.Demand()
	blocked := float64(n.StateNs(recording.KindBlocked)+n.StateNs(recording.KindThrottled)+n.StateNs(recording.KindFrozen)) / 1e9 / n.Seconds()
	if kept.MinNs < floorOfWork*workNs || known && d.Total() > maxIdleDemand || blocked >= blockedOften {
		return nil
	}
	f := &Finding{Of: len(n.Ledger.Slow), Confidence: 0.85}
	extra := float64(kept.MinNs-min(usualRTTNs, kept.MinNs)-workNs) * float64(kept.Calls)
	f.ExcessShare = min(1, max(0, extra/(float64(kept.P50Ns)*float64(kept.Calls)+float64(n.Ledger.ExcessNs))))
	if part := n.Overhead(n.Callers()).Share(); part > 0 {
		f.ExcessShare *= 1 - part // it is in the round trips of new connections, too, but those need not be
		if part >= facts.MinShare {
			f.doubt(recording.SourceTap, fmt.Sprintf("the callers lose %.0f %% of their time on their connections "+
				"before and beside their calls: in new ones, tests and calls that they give up", part*100), part,
				"of their time")
		}
	}
	f.support(recording.SourceProbe, fmt.Sprintf("every call takes at least %s, the median %s, 9 of 10 up to %s: a "+
		"floor and no tail", facts.Dur(kept.MinNs), facts.Dur(kept.P50Ns), facts.Dur(kept.P90Ns)), float64(kept.MinNs),
		"ns")
	if workNs > 0 {
		f.support(recording.SourceServer, fmt.Sprintf("the server works %s on each of these calls (commandstats)",
			facts.Dur(workNs)), float64(workNs), "ns")
	}
	if known {
		f.support(d.Source, fmt.Sprintf("its main thread has work %.0f %% of the time", d.Total()*100), d.Total(),
			"of the time")
	}
	if p50 := n.Ledger.Users.P50Ns; p50 >= floorNs && n.Ledger.Users.FromClient {
		f.support(recording.SourceTap, fmt.Sprintf("half of the %d calls of clients on this host take %s and more, too",
			n.Ledger.Users.Calls, facts.Dur(p50)), float64(p50), "ns")
	}
	f.weighDistance(n)
	f.whereFloor(n)
	f.doubtFloor(n, known)
	f.See = []string{"https://redis.io/docs/latest/operate/oss_and_stack/management/optimization/latency/#latency-induced-by-network-and-communication"}
	return f
}

// whereFloor tells distance, which a TCP connect takes too, from something between that answers connects itself.
func (f *Finding) whereFloor(n *facts.Node) {
	kept, _ := n.Ledger.Path(n.Address, "kept")
	fresh, ok := n.Ledger.Path(n.Address, "fresh")
	far := []string{
		"Move the callers to the server's zone or region, or a replica to the callers'",
		"Make fewer round trips: pipelines, MGET, Lua; keep what is read often in the caller (CLIENT TRACKING)",
	}
	switch {
	case ok && fresh.ConnectMinNs > 0 && float64(fresh.ConnectMinNs) >= throughTCP*float64(kept.MinNs):
		f.Confidence = 0.95
		f.support(recording.SourceProbe, fmt.Sprintf("a TCP connect takes %s: it is the distance, no process is "+
			"asked for it", facts.Dur(fresh.ConnectMinNs)), float64(fresh.ConnectMinNs), "ns")
		f.Fix = far
	case ok && fresh.ConnectMinNs > 0:
		f.Title = "Something on the path delays every call by the same time: a proxy, a tunnel or a service mesh"
		f.support(recording.SourceProbe, fmt.Sprintf("a TCP connect takes only %s: what answers it is near, and "+
			"passes calls on slowly or to far away", facts.Dur(fresh.ConnectMinNs)), float64(fresh.ConnectMinNs), "ns")
		f.Fix = append([]string{"Ask the server itself and the hop before it side by side: slowpath doctor " +
			"PROXY:PORT SERVER:PORT", "Look for a flush or batch timer in the proxy (Envoy buffer_flush_timeout, " +
			"default 3 ms)"}, far...)
	default:
		f.Confidence = 0.7
		f.Fix = far
	}
}

func (f *Finding) doubtFloor(n *facts.Node, known bool) {
	if !n.Rec.Used(recording.SourceTap) {
		f.doubt(recording.SourceProbe, "only slowpath's own calls were timed: what clients lose beside this floor, "+
			"by new connections or in their pools, was not seen", 0, "")
	}
	if !known {
		f.Confidence -= 0.2
		f.doubt(recording.SourceServer, "how busy the server is was not seen", 0, "")
	}
	always, _ := n.Config("appendfsync")
	aof, _ := n.Config("appendonly")
	if always == "always" && aof == "yes" && !n.HostWatched() {
		f.Confidence -= 0.4
		f.doubt(recording.SourceServer, "appendfsync is always: a disk that takes as long for each write looks the "+
			"same from afar", 0, "")
	}
}

// weighDistance compares a floor with the round trips of clients at other addresses.
func (f *Finding) weighDistance(n *facts.Node) {
	a := n.Acknowledgements()
	switch {
	case a.MinRTTNs >= floorNs:
		f.support(recording.SourceTap, fmt.Sprintf("clients at other addresses have a round trip of %s at its best, "+
			"too (TCP; the median of %d connections)", facts.Dur(a.MinRTTNs), a.Conns), float64(a.MinRTTNs), "ns")
	case a.Conns > 0:
		f.doubt(recording.SourceTap, fmt.Sprintf("clients at other addresses have a round trip of only %s at its "+
			"best (TCP; the median of %d connections)", facts.Dur(a.MinRTTNs), a.Conns), float64(a.MinRTTNs), "ns")
	}
}
