package cause

import (
	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// rttFloor: the path to the server takes long, and the same time for each call.
var rttFloor = Cause{
	ID:      "rtt-floor",
	Changes: []string{"queueing discipline", "route"},
	After:   []string{"n-plus-one-roundtrips"}, // the number of round trips can be fixed, their length seldom
	Always:  true,
	Explain: explainFloor,
}

func explainFloor(n *facts.Node) *Finding {
	if p, ok := CapturedFloor(n); ok {
		return capturedFloor(n, p)
	}
	kept, ok := n.Ledger.Path(n.Address, "kept")
	if !ok || kept.Calls-kept.Unsent < floorCalls || kept.MinNs < n.NoticedNs() || kept.P50Ns > 2*kept.MinNs {
		return nil
	}
	if hosts.PathQueueOf(n).ConnectNs > 0 {
		return nil // round trips were shorter once
	}
	workNs := mainthread.ProbeWorkNs(n)
	d, known := mainthread.DemandOf(n)
	blockedNs := mainthread.StateNs(n, recording.KindBlocked) + mainthread.StateNs(n, recording.KindThrottled) +
		mainthread.StateNs(n, recording.KindFrozen)
	blocked := float64(blockedNs) / 1e9 / n.Seconds()
	if kept.MinNs < floorOfWork*workNs || known && d.Total() > maxIdleDemand || blocked >= degree.Part {
		return nil
	}
	f := &Finding{Of: n.Ledger.Calls()}
	extra := float64(kept.MinNs-workNs) * float64(kept.Calls)
	all := float64(kept.P50Ns)*float64(kept.Calls) + float64(n.Ledger.ExcessNs)
	f.loseOfCalls(n, min(1, extra/all), kept.MinNs)
	if part := connection.OverheadOf(n, caller.Callers(n)).Share(); part > 0 {
		f.scale(1 - part) // it is in the round trips of new connections, too, but those can be avoided
		if part >= facts.MinShare {
			f.doubt(recording.SourceTap, part, "of their time", "the callers lose %.0f %% of their time on "+
				"connections outside their calls: new ones, tests, and calls that they give up", part*100)
		}
	}
	f.supportSteady(recording.SourceProbe, kept.MinNs, kept.P50Ns, kept.P90Ns)
	if workNs > 0 {
		f.support(recording.SourceServer, float64(workNs), "ns",
			"the server works %s on each of these calls (commandstats)", format.Brief(workNs))
	}
	if known {
		f.support(d.Source, d.Total(), "of the time", "its main thread is busy %.0f %% of the time", d.Total()*100)
	}
	if p50 := n.Ledger.Users.P50Ns; p50 >= floorNs && n.Ledger.Users.FromClient {
		f.support(recording.SourceTap, float64(p50), "ns", "half of the %d calls of clients on this host take at "+
			"least %s, too", n.Ledger.Users.Calls, format.Brief(p50))
	}
	f.weighDistance(n)
	f.whereFloor(n, known)
	f.doubtFloor(n, known)
	return f
}

// CapturedFloor is the path to a node in a packet capture; false unless all calls take as long as the fastest, and
// longer than anybody notices.
func CapturedFloor(n *facts.Node) (p hosts.CapturedPath, ok bool) {
	p = hosts.CapturedPathOf(n)
	return p, p.Calls >= floorCalls && p.MinNs >= n.NoticedNs() && p.P50Ns <= 2*p.MinNs
}

// capturedFloor finds distance in a packet capture of the clients' end: the server's kernel answers a SYN by itself, so
// that what it takes is the path's. Without an opened connection a slow server looks the same.
func capturedFloor(n *facts.Node, p hosts.CapturedPath) *Finding {
	if float64(p.ConnectMinNs) < account.ThroughTCP*float64(p.P50Ns) {
		return nil
	}
	f := &Finding{Of: n.Ledger.Calls(), FixSteps: nearer()}
	f.Title = "The network path takes the time: every call is equally slow, and so is the answer to a SYN"
	extra := float64(min(p.ConnectMinNs, p.MinNs)) * float64(p.Calls)
	f.loseOfCalls(n, min(1, extra/(float64(p.P50Ns)*float64(p.Calls)+float64(n.Ledger.ExcessNs))), p.MinNs)
	f.supportSteady(recording.SourceTap, p.MinNs, p.P50Ns, p.P90Ns)
	f.support(recording.SourceTap, float64(p.ConnectMinNs), "ns", "a SYN has its answer after %s (the fastest of %s): "+
		"it is the distance, no process takes part in it", format.Brief(p.ConnectMinNs), counted(p.Dials, "connection"))
	return f
}

func (f *Finding) supportSteady(source string, least, p50, p90 int64) {
	f.support(source, float64(least), "ns", "every call takes at least %s, median %s, p90 %s: a floor without a tail",
		format.Brief(least), format.Brief(p50), format.Brief(p90))
}

// nearer are the steps against distance.
func nearer() []remedy.Step {
	return []remedy.Step{
		change("near-the-server", "Move the callers to the server's zone or region, or a replica that they read from "+
			"to theirs"),
		orElse(inApplication("fewer-round-trips", "Make fewer round trips: pipelines, MGET, Lua; cache what is read "+
			"often in the caller (CLIENT TRACKING)")),
	}
}

// whereFloor distinguishes distance, which a TCP connect takes too, from something on the path that answers connects
// itself. known is whether the server's load is.
func (f *Finding) whereFloor(n *facts.Node, known bool) {
	kept, _ := n.Ledger.Path(n.Address, "kept")
	fresh, ok := n.Ledger.Path(n.Address, "fresh")
	f.FixSteps = nearer()
	switch {
	case ok && fresh.ConnectMinNs > 0 && float64(fresh.ConnectMinNs) >= account.ThroughTCP*float64(kept.MinNs):
		f.support(recording.SourceProbe, float64(fresh.ConnectMinNs), "ns",
			"a TCP connect takes %s, too: no process takes part in it", format.Brief(fresh.ConnectMinNs))
		if !hosts.KernelKnowsPath(n) {
			f.doubt(recording.SourceHost, 0, "", "a queue on the path that was never empty looks the same: whether "+
				"round trips were ever shorter is known to the kernels at its ends, to which slowpath had no access")
		}
	case ok && fresh.ConnectMinNs > 0:
		f.Title = "Something on the path delays every call by the same time: a proxy, a tunnel or a service mesh"
		f.support(recording.SourceProbe, float64(fresh.ConnectMinNs), "ns", "a TCP connect takes only %s: what "+
			"answers it is near, and forwards calls slowly or far away", format.Brief(fresh.ConnectMinNs))
		f.FixSteps = append([]remedy.Step{
			change("no-flush-timer", "Look for a flush or batch timer in what forwards the calls (Envoy: "+
				"buffer_flush_timeout, 3 ms where max_buffer_size_before_flush is set) and shorten it; slowpath "+
				"doctor with the addresses of the proxy and of the server shows which of them takes the time"),
		}, f.FixSteps...)
	case !known:
		f.weaken(1)
	}
}

func (f *Finding) doubtFloor(n *facts.Node, known bool) {
	if !n.Rec.SeesCalls() {
		f.doubt(recording.SourceProbe, 0, "", "only slowpath's own calls were timed: what clients lose besides, by "+
			"new connections or in their pools, was not seen")
	}
	if !known {
		f.doubt(recording.SourceServer, 0, "", "how busy the server is was not seen")
	}
	always, _ := n.Config("appendfsync")
	aof, _ := n.Config("appendonly")
	if always == "always" && aof == "yes" && !mainthread.HostWatched(n) {
		f.weaken(1)
		f.doubt(recording.SourceServer, 0, "",
			"appendfsync is always: a disk that takes as long for each write looks the same from outside")
	}
}

// weighDistance compares a floor with the round trips of clients at other addresses.
func (f *Finding) weighDistance(n *facts.Node) {
	a := hosts.AcknowledgementsOf(n)
	switch {
	case a.MinRTTNs >= floorNs:
		f.support(recording.SourceTap, float64(a.MinRTTNs), "ns", "the best round trip of clients at other addresses "+
			"is %s, too (TCP; median of %s)", format.Brief(a.MinRTTNs), counted(a.Conns, "connection"))
	case a.Conns > 0:
		f.doubt(recording.SourceTap, float64(a.MinRTTNs), "ns", "the best round trip of clients at other addresses is "+
			"only %s (TCP; median of %s)", format.Brief(a.MinRTTNs), counted(a.Conns, "connection"))
	}
}
