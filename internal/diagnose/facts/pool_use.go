package facts

const (
	MostlySlow = 0.5
)

// PoolUse is how a caller uses its connections.
type PoolUse struct {
	*Caller
	Used   []*Conn
	Busy   float64 // of the time, with a call in flight: all connections together
	Least  float64 // that of the least used
	GapNs  int64   // from a reply to the next send, on average
	CallNs int64
	Calls  float64 // per second
}

// PoolUseOf sums up the connections of a caller that were used until the end; ok is false where too little was seen.
func (n *Node) PoolUseOf(c *Caller) (u PoolUse, ok bool) {
	u = PoolUse{Caller: c, Least: 1}
	var flight, gaps, calls int64
	var seconds, longest float64
	for _, k := range c.Conns {
		if len(k.Use) < 2 || k.CloseNs > 0 {
			continue
		}
		a, b := k.Use[0], k.Use[len(k.Use)-1]
		in, s := b.inFlightNs-a.inFlightNs, float64(b.at-a.at)/1e9
		if b.Calls == a.Calls || s <= 0 {
			continue
		}
		u.Used = append(u.Used, k)
		u.Least = min(u.Least, float64(in)/1e9/s)
		flight, gaps, calls, seconds, longest = flight+in, gaps+b.idleNs-a.idleNs, calls+b.Calls-a.Calls, seconds+s,
			max(longest, s)
	}
	if len(u.Used) == 0 || calls == 0 {
		return u, false
	}
	u.Busy, u.GapNs, u.CallNs, u.Calls = float64(flight)/1e9/seconds, gaps/calls, flight/calls, float64(calls)/longest
	return u, true
}

const (
	OversizedConns = 256 // of one process, in use
	OversizedLine  = 128 // of them at a time
)
