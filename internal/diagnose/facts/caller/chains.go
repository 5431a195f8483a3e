package caller

import (
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// Chains are calls of one command that callers made one after the other on a connection, and that together took as long
// as a slow call: what asked for them waited for them all.
type Chains struct {
	// Count is the number of chains.
	Count int64
	// Calls is the number of their calls.
	Calls int64
	// Ns is the time from the first request of each to its last reply, in nanoseconds; of Walks without their pauses.
	Ns int64
	// WorkNs is the server's own time for these calls, by its mean for the command, in nanoseconds: fewer calls for as
	// much would take that, too.
	WorkNs int64
	// Callers are those who made them.
	Callers []*Caller
	// Ops is the commands, by the number of their chains.
	Ops facts.NameCounts
}

// ChainsOf adds up the chains of those callers of which they are a pattern: at least HealthyMinCalls chains, and more
// than HealthyMaxShare of the caller's requests, where each call in no chain is a request of its own.
func ChainsOf(n *facts.Node) Chains {
	sum := Chains{Ops: facts.NameCounts{}}
	names := n.Rec.NamesBySubject(recording.SourceTap, series.ChainsOfPrefix)
	if len(names) == 0 {
		return sum
	}
	for _, caller := range Callers(n) {
		if n.Ledger.IsProxyProcess(caller.PID) {
			continue // its calls belong to many callers
		}
		own := Chains{Ops: facts.NameCounts{}}
		for _, k := range caller.Conns {
			if !InTurns(n, caller.PID, k) {
				own.add(n, k, names[recording.ConnPrefix+k.Client])
			}
		}
		others := max(caller.AppCalls()-own.Calls, 0)
		share := float64(own.Count) / float64(max(own.Count+others, 1))
		if !(facts.Affected{Calls: int(own.Count), Share: share}).Pattern() {
			continue
		}
		sum.Count, sum.Calls, sum.Ns = sum.Count+own.Count, sum.Calls+own.Calls, sum.Ns+own.Ns
		sum.WorkNs += own.WorkNs
		sum.Callers = append(sum.Callers, caller)
		for op, k := range own.Ops {
			sum.Ops[op] += k
		}
	}
	return sum
}

// usualNs is the median time of the calls of a command at the clients' end, in nanoseconds; 0: none were timed there.
func usualNs(n *facts.Node, command string) int64 {
	for _, h := range n.Rec.HistogramSums(recording.SourceTap) {
		if h.Node == n.Address && h.Op == recording.Client+" "+command {
			return h.Sum.ValueAtQuantile(50)
		}
	}
	return 0
}

// Walks are the commands that walk a keyspace or a collection, by a cursor.
var Walks = facts.WordSet("SCAN SSCAN HSCAN ZSCAN")

// LastThreadOf is what the tap counted last on a connection, and not on another one of the same address.
func LastThreadOf(n *facts.Node, c *Conn, of series.Name) (v int64) {
	for _, p := range n.Rec.Of(of, c.Client) {
		if c.openAt(p.TimeNs) {
			v = int64(p.Value)
		}
	}
	return v
}

// add adds the chains of a connection; names are those of its samples that begin with series.ChainsOfPrefix. Chains
// that would hardly be shorter with fewer calls, since the server works for most of them, are left out. So are scripts:
// what they do is not known, and workers of queues run one after the other.
func (s *Chains) add(n *facts.Node, c *Conn, names []string) {
	last := func(of series.Name) int64 { return LastThreadOf(n, c, of) }
	command, most := "", int64(0)
	for _, name := range names {
		of := strings.TrimPrefix(name, series.ChainsOfPrefix)
		if k := last(series.ChainsOf(of)); k > most {
			command, most = of, k
		}
	}
	ns, calls := last(series.ChainTime), last(series.ChainCalls)
	// one loop that never ends, such as that of a load generator: no request waits for its end
	endless := c.CloseNs == 0 && float64(ns) > degree.NearlyAll*float64(n.EndNs-max(c.OpenNs, n.StartNs))
	// Calls that come as soon as a worker is free, one by one, have pauses in between. Each one of a walk is known to
	// have waited for the one before.
	inFlight := last(series.ChainInFlight)
	prompt := Walks[command] || ns-inFlight <= account.PauseNs*calls
	if usual := usualNs(n, command) * calls; usual > 0 { // a caller that had no CPU for a while reads a reply late
		ns = min(ns, usual+max(ns-inFlight, 0))
		inFlight = min(inFlight, usual)
	}
	each := ns / max(calls, 1) // calls that are slow themselves are slow calls, and no chain makes them so
	work := n.WorkNsOf(command) * calls
	noticed := ns-work >= most*n.Ledger.ThresholdNs
	if most == 0 || endless || !prompt || !noticed || each >= n.Ledger.ThresholdNs ||
		strings.HasPrefix(command, "EVAL") || strings.HasPrefix(command, "FCALL") {
		return
	}
	if Walks[command] {
		ns = inFlight // the pauses are the caller's own
	}
	s.Count, s.Calls, s.Ns, s.WorkNs = s.Count+most, s.Calls+calls, s.Ns+ns, s.WorkNs+work
	s.Ops[command] += int(most)
}
