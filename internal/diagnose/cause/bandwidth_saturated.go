package cause

import (
	"fmt"
	"slices"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// bandwidthSaturated: packets wait in a queue on the path, since more is sent than it carries.
var bandwidthSaturated = Cause{
	ID:      "bandwidth-saturated",
	Changes: []string{"queueing discipline", "route", "reply size", "call rate"},
	Explain: explainBandwidth,
}

func explainBandwidth(n *facts.Node) *Finding {
	q := hosts.PathQueueOf(n)
	behind := q.WaitNs >= n.NoticedNs()
	if !behind && q.ConnectNs == 0 {
		return nil
	}
	bytes := facts.NameCounts{}
	cl := n.ClaimOf(func(a account.Account) (times facts.StateTimes) {
		for _, s := range a.Segments {
			if s.Actor == account.Network && (s.State == account.Back || s.State == account.Out) ||
				facts.IsUnexplainedWait(s) && s.Actor != account.Server && a.Call.Source == recording.SourceProbe {
				times.Add(s, s.Ns())
			}
		}
		if a.Call.Source == recording.SourceTap {
			bytes[format.Name(a.Call.Op)+" of "+programOf(a.Call)] += int(a.Call.ReplyBytes)
		}
		return times
	})
	var f *Finding
	switch lost := lostBehind(n, q); {
	case cl.Matters():
		f = finding(n, cl)
	case behind && n.LossNoticed(0, lost):
		f = &Finding{Of: n.Ledger.Calls()}
		f.lose(n, facts.LostInCalls, lost, q.WaitNs)
		f.doubt(recording.SourceTap, 0, "", "how long the callers wait was not seen: they are on other hosts")
	default:
		return nil
	}
	f.supportQueue(n, q, behind)
	if top := bytes.Top(1); len(top) > 0 && bytes[top[0]] > 0 {
		f.support(recording.SourceTap, float64(bytes[top[0]])/float64(bytes.Total()), "of the bytes",
			"%s of the bytes of these replies are those of %s", format.Percent(float64(bytes[top[0]])/
				float64(bytes.Total())), top[0])
	}
	f.supportLarge(n)
	f.blameCalls(n, "the bytes of replies", replyBytes)
	f.FixSteps = bandwidthFix(q, bytes)
	return f
}

// programOf is the name of the program that made a call, or the host that it is on.
func programOf(c recording.Call) string {
	if name, _, ok := strings.Cut(c.Client, "["); ok && name != "" {
		return format.Name(name)
	}
	return caller.HostOf(c.Conn)
}

// lostBehind is the time in nanoseconds that callers waited for what was on its way to them, as far as it was longer
// than their least round trip. Replicas wait for nothing.
func lostBehind(n *facts.Node, q hosts.PathQueue) float64 {
	replicas := facts.LastValue(n.Series(series.ConnectedSlaves))
	return max(q.ConnsOnTheWay-replicas, 0) * n.Seconds() * 1e9 * float64(q.WaitNs) / float64(q.WaitNs+q.LeastNs)
}

func (f *Finding) supportQueue(n *facts.Node, q hosts.PathQueue, behind bool) {
	if behind {
		f.support(recording.SourceHost, float64(q.WaitNs), "ns",
			"segments of replies were on their way for %s on average; the least round trip of the same connections is "+
				"%s (TCP_INFO of the server's sockets)", format.Brief(q.WaitNs+q.LeastNs), format.Brief(q.LeastNs))
	}
	if q.ConnectNs > 0 {
		f.support(recording.SourceProbe, float64(q.ConnectNs), "ns",
			"a TCP connect takes %s in the median, and no process takes part in it; the path's least round trip is %s",
			format.Brief(q.ConnectNs), format.Brief(q.DistanceNs))
	}
	if q.Device != "" {
		f.support(recording.SourceHost, q.DeviceBytes, "bytes",
			"%.0f kB wait in the queue of %s of this host on average", q.DeviceBytes/1e3, q.Device)
	} else {
		f.doubt(recording.SourceHost, 0, "",
			"where they wait was not seen, and whose bytes fill the queue: no device of "+
				"this host has one; the kernel of a client's host that gets no CPU acknowledges as late")
	}
	if rate := n.PerSecond(series.TotalNetOutputBytes); rate > 0 {
		f.support(recording.SourceServer, rate*8, "bit/s", "the server sends %.1f Mbit/s", rate*8/1e6)
	}
}

func bandwidthFix(q hosts.PathQueue, bytes facts.NameCounts) []remedy.Step {
	where := "of the path: ethtool -S of the cards at both ends (AWS: bw_in_allowance_exceeded, " +
		"bw_out_allowance_exceeded), the instance's bandwidth, tc -s qdisc on the hosts between; a larger instance, " +
		"or a higher rate there"
	if q.Device != "" {
		where = fmt.Sprintf("of %s on this host (tc -s qdisc), if somebody set it, such as "+
			"kubernetes.io/egress-bandwidth; else that of the network card or the instance", q.Device)
	}
	what := "replies"
	if top := bytes.Top(1); len(top) > 0 {
		what = "replies to " + top[0]
	}
	steps := []remedy.Step{
		inApplication("fewer-bytes", "%s",
			"Make the "+what+" smaller: compress the values, read only the part that is "+
				"needed, cache them in the caller (CLIENT TRACKING)"),
		orElse(change("more-bandwidth", "%s", "Raise the bandwidth "+where)),
	}
	if q.Device != "" { // it is known where
		slices.Reverse(steps)
		steps[0].Or, steps[1].Or = false, true
	}
	return steps
}
