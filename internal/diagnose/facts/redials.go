package facts

// Redial is connections that a caller closed, and others that it opened.
type Redial struct {
	*Caller
	// Closed are the connections that it closed, or that were closed.
	Closed []*Conn
	// Dialled are the connections that it opened while a call waited: the first call came right after the handshake.
	Dialled []*Conn

	seconds float64 // of the watch
}

// MinRedials is the least number of redials that is a pattern.
const MinRedials = HealthyMinCalls

// Redials are the callers that closed connections for a reason and opened others.
func (n *Node) Redials(callers []*Caller, reason func(*Conn) bool) []Redial {
	var out []Redial
	for _, c := range callers {
		r := redialOf(c, reason)
		r.seconds = n.Seconds()
		if k := min(len(r.Closed), len(r.Dialled)); k >= MinRedials {
			out = append(out, r)
		}
	}
	return out
}

// redialOf are the connections that a caller closed for a reason, and those that it opened while calls waited.
func redialOf(c *Caller, reason func(*Conn) bool) Redial {
	r := Redial{Caller: c, Closed: c.ConnsWhere(reason)}
	for _, k := range c.Opened() {
		if !k.OpenedAheadOfUse(c.RoundTripNs()) {
			r.Dialled = append(r.Dialled, k)
		}
	}
	return r
}

// CostNs is what those new connections cost that replaced closed ones, in nanoseconds.
func (r Redial) CostNs() int64 {
	var ns int64
	for _, k := range r.Dialled {
		ns += k.OpeningNs()
	}
	return ns * int64(min(len(r.Closed), len(r.Dialled))) / int64(max(len(r.Dialled), 1))
}

// RedialSum are the redials of several callers.
type RedialSum struct {
	// Callers are those who redialled.
	Callers []*Caller
	// Largest is the redial with the most closed connections.
	Largest Redial
	// CostNs is what all of them cost, in nanoseconds.
	CostNs int64
}

// SumRedials adds up redials.
func SumRedials(list []Redial) (sum RedialSum) {
	for _, r := range list {
		sum.Callers, sum.CostNs = append(sum.Callers, r.Caller), sum.CostNs+r.CostNs()
		if len(r.Closed) > len(sum.Largest.Closed) {
			sum.Largest = r
		}
	}
	return sum
}
