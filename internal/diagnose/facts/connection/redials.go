package connection

import (
	"cmp"
	"slices"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
)

// Redial is connections that a caller closed, and others that it opened.
type Redial struct {
	*caller.Caller
	// Closed are the connections that it closed, or that were closed.
	Closed []*caller.Conn
	// Dialled are the connections that it opened while a call waited: the first call came right after the handshake.
	Dialled []*caller.Conn
}

// MinRedials is the least number of redials that is a pattern.
const MinRedials = facts.HealthyMinCalls

// Redials are the callers that closed connections for a reason and opened others. Callers that each did so too seldom
// count together with those that run the same program.
func Redials(callers []*caller.Caller, reason func(*caller.Conn) bool) []Redial {
	var out []Redial
	var few []*caller.Caller
	for _, c := range callers {
		if r := redialOf(c, reason); r.count() >= MinRedials {
			out = append(out, r)
		} else if r.again() {
			few = append(few, c)
		}
	}
	for _, c := range caller.Programs(few) {
		if r := redialOf(c, reason); r.count() >= MinRedials {
			out = append(out, r)
		}
	}
	return out
}

// again reports whether a connection was opened after one was closed: a process that ends closes its connection, too.
func (r Redial) again() bool {
	return slices.ContainsFunc(r.Closed, func(k *caller.Conn) bool {
		return slices.ContainsFunc(r.Dialled, func(d *caller.Conn) bool {
			return k.CloseNs > 0 && d.OpenNs > k.CloseNs-k.IdleNs && d != k
		})
	})
}

// count is how often a closed connection was replaced by a new one.
func (r Redial) count() int { return min(len(r.Closed), len(r.Dialled)) }

// redialOf are the connections that a caller closed for a reason, and those that it opened while calls waited.
func redialOf(c *caller.Caller, reason func(*caller.Conn) bool) Redial {
	return Redial{Caller: c, Closed: c.ConnsWhere(reason), Dialled: inNeed(c)}
}

// inNeed are the connections that a caller opened while a call waited.
func inNeed(c *caller.Caller) []*caller.Conn {
	return slices.DeleteFunc(c.Opened(), func(k *caller.Conn) bool { return k.OpenedAheadOfUse(c.RoundTripNs()) })
}

// introducedInNeed are those of them whose handshake was seen, without those that were opened for a known reason.
func introducedInNeed(c *caller.Caller, known map[*caller.Conn]bool) []*caller.Conn {
	return slices.DeleteFunc(inNeed(c), func(k *caller.Conn) bool { return k.Handshake == nil || known[k] })
}

// byOpening orders connections by the begin of their opening.
func byOpening(a, b *caller.Conn) int { return cmp.Compare(a.Opening().FromNs, b.Opening().FromNs) }

// CostNs is what those new connections cost that replaced closed ones, in nanoseconds, without the seconds in which the
// server did not answer a SYN.
func (r Redial) CostNs() int64 {
	var ns int64
	for _, k := range r.Dialled {
		ns += k.OpeningNs()
		if sentAgain(k.DialNs) {
			ns -= k.DialNs
		}
	}
	return ns * int64(r.count()) / int64(max(len(r.Dialled), 1))
}

// RedialSum are the redials of several callers.
type RedialSum struct {
	// Callers are those who redialled.
	Callers []*caller.Caller
	// Largest is the redial with the most closed connections.
	Largest Redial
	// Count is how often a closed connection was replaced by a new one.
	Count int
	// CostNs is what all of them cost, in nanoseconds.
	CostNs int64
}

// SumRedials adds up redials.
func SumRedials(list []Redial) (sum RedialSum) {
	for _, r := range list {
		sum.Callers, sum.CostNs = append(sum.Callers, r.Caller), sum.CostNs+r.CostNs()
		sum.Count += r.count()
		if len(r.Closed) > len(sum.Largest.Closed) {
			sum.Largest = r
		}
	}
	return sum
}
