package connection

import (
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/recording/series"
)

// PoolUse is how a caller uses its connections.
type PoolUse struct {
	*caller.Caller
	// Used are the connections that were used until the end of the watch.
	Used []*caller.Conn
	// BusyShare is the share of the time with a call in flight, all connections together.
	BusyShare float64
	// MinBusyShare is that of the least used connection.
	MinBusyShare float64
	// GapNs is the mean time from a reply to the next send, in nanoseconds.
	GapNs int64
	// CallNs is the mean time of a call, in nanoseconds.
	CallNs int64
	// CallsPerSecond is the rate of calls.
	CallsPerSecond float64
	// PromptShare is the share of the calls that were sent right after the reply before them; 0 where it is not known.
	PromptShare float64
}

// PoolUseOf sums up the connections of a caller that were used until the end; ok is false where too little was seen.
func PoolUseOf(n *facts.Node, c *caller.Caller) (u PoolUse, ok bool) {
	u = PoolUse{Caller: c, MinBusyShare: 1}
	var flight, gaps, calls, prompt int64
	var seconds, longest float64
	for _, k := range c.Conns {
		if k.CloseNs > 0 {
			continue
		}
		a, b, ok := caller.EndsOf(k.Samples())
		if !ok {
			continue
		}
		in, s := b.InFlightNs-a.InFlightNs, float64(b.TimeNs-a.TimeNs)/1e9
		if b.Calls == a.Calls || s <= 0 {
			continue
		}
		u.Used = append(u.Used, k)
		u.MinBusyShare = min(u.MinBusyShare, float64(in)/1e9/s)
		prompt += max(b.Prompt-max(a.Prompt, 0), 0)
		flight, gaps, calls, seconds, longest = flight+in, gaps+b.IdleNs-a.IdleNs, calls+b.Calls-a.Calls, seconds+s,
			max(longest, s)
	}
	if len(u.Used) == 0 || calls == 0 {
		return u, false
	}
	u.BusyShare, u.GapNs, u.CallNs, u.CallsPerSecond = float64(flight)/1e9/seconds, gaps/calls, flight/calls,
		float64(calls)/longest
	u.PromptShare = float64(prompt) / float64(calls)
	return u, true
}

// OneThreadEach reports whether as many threads of a process read replies as it has connections, and none of them was
// seen to wait for one: no call waits, however busy the connections are. Of a Go program that says nothing: as many
// threads as connections is chance, since goroutines call and wait.
func OneThreadEach(n *facts.Node, u PoolUse) bool {
	if hosts.IsGo(n.Case, u.PID) {
		return false
	}
	for _, k := range u.Used {
		if last, _ := n.Rec.LastConnUse(k.Client); last.Turns == 0 || last.Handed > 0 {
			return false
		}
	}
	readers, ok := n.ProcessSeries(u.PID, series.Readers).Last()
	return ok && int(readers) == len(u.Used)
}

// ServedThreads is at least how many threads of a process were woken by those that read the replies on a connection,
// on the one with the least; 0 where it is not known, or where more threads read than there are connections: then they
// wake each other for other reasons.
func ServedThreads(n *facts.Node, u PoolUse) (least int) {
	readers, ok := n.ProcessSeries(u.PID, series.Readers).Last()
	if !ok || int(readers) > len(u.Used) {
		return 0
	}
	for i, k := range u.Used {
		last, _ := n.Rec.LastConnUse(k.Client)
		if i == 0 || int(last.Served) < least {
			least = int(last.Served)
		}
	}
	return least
}
