package facts

import (
	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/recording"
)

// Claim is what a cause explains of the slow calls.
type Claim struct {
	// Calls is the number of slow calls with at least a part of their excess explained.
	Calls int
	// Ns is the excess that is explained, in nanoseconds, each call by its weight.
	Ns int64
	// MaxNs is the most that is explained of one call, in nanoseconds.
	MaxNs int64
	// PerCall is what is explained of each call.
	PerCall []CallNs
	// Eliminated: the time was claimed since no source says what it was.
	Eliminated bool
	// Users are the affected calls of the server's clients, which the tap sees; Probe all others: the
	// probe's, and commands that the server logged.
	Users, Probe Affected
}

// Affected is the calls of one kind of caller that something affected.
type Affected struct {
	// Calls is the number of slow calls.
	Calls int
	// AllCalls is the number of all calls, slow or not.
	AllCalls int
	// Share is the affected share of AllCalls; where only a part of the slow calls was recorded, those stand for the
	// rest.
	Share float64
	// MaxNs is the most that was explained of one call, in nanoseconds.
	MaxNs int64
}

// Claim adds up the segments of this node's slow calls that match; of each call at most its excess.
func (n *Node) Claim(match func(account.Account, account.Segment) bool) Claim {
	return n.ClaimOf(func(a account.Account) StateTimes {
		return TimesOf(a, func(s account.Segment) bool { return match(a, s) })
	})
}

// ClaimOf adds up the times that are explained of each of this node's slow calls; of each call at most its
// excess. Of a call that a proxy among the nodes made, the time is its caller's.
func (n *Node) ClaimOf(explained func(account.Account) StateTimes) Claim {
	var cl Claim
	weighted := 0.0
	for i, a := range n.Ledger.Slow {
		if a.Call.Node != n.Address {
			continue
		}
		root := n.Ledger.Root(i)
		of := n.Ledger.Slow[root]
		times := explained(a)
		ns := min(times.Ns(), a.ExcessNs, of.ExcessNs)
		if ns <= 0 {
			continue
		}
		cl.PerCall = append(cl.PerCall, CallNs{root, float64(ns), n.asInWhole(i, times)})
		weighted += float64(ns) * of.Weight
		cl.MaxNs = max(cl.MaxNs, ns)
		whose := &cl.Probe
		if of.Call.Source == recording.SourceTap {
			whose = &cl.Users
		}
		whose.MaxNs = max(whose.MaxNs, ns)
		if float64(ns) >= degree.Part*float64(of.ExcessNs) {
			cl.Calls++
			whose.Calls++
		}
	}
	cl.Users.AllCalls, cl.Probe.AllCalls = n.Ledger.Users.Calls, n.Ledger.Probe.Calls
	cl.Users.Share = n.Ledger.Users.OfAll(cl.Users.Calls) / float64(max(n.Ledger.Users.Calls, 1))
	cl.Probe.Share = n.Ledger.Probe.OfAll(cl.Probe.Calls) / float64(max(n.Ledger.Probe.Calls, 1))
	cl.Ns = int64(weighted + 0.5)
	if weighted > 0 {
		cl.Ns = max(cl.Ns, 1)
	}
	return cl
}

// asInWhole names states as the whole of the call does of which slow call i of this node is a part: what a proxy did is
// the proxy's.
func (n *Node) asInWhole(i int, times StateTimes) StateTimes {
	for k := range times {
		times[k].Actor = n.Ledger.ActorInWhole(i, times[k].Actor)
	}
	return times
}

// InState claims the time that slow calls spent with the server in a state.
func (n *Node) InState(state string) Claim { return n.InStateOf(account.Server, state) }

// InStateOf claims the time that slow calls spent with an actor in a state.
func (n *Node) InStateOf(actor, state string) Claim {
	return n.Claim(func(_ account.Account, s account.Segment) bool { return s.Actor == actor && s.State == state })
}

// TapClaim is ClaimOf the slow calls that the tap saw.
func (n *Node) TapClaim(explained func(account.Account) StateTimes) Claim {
	return n.ClaimOf(func(a account.Account) StateTimes {
		if a.Call.Source != recording.SourceTap {
			return nil
		}
		return explained(a)
	})
}

// Matters reports whether a claim is worth a finding: a call waited for at least HealthyMaxNs, at least
// HealthyMinCalls of the probe's calls were affected, or the users' calls have a pattern. The probe calls rarely and at
// random, so that three of its calls say much; of the users' thousands of calls three say nothing.
func (c Claim) Matters() bool {
	return c.MaxNs >= HealthyMaxNs || c.Probe.Calls >= HealthyMinCalls || c.Users.Pattern()
}

// Pattern reports whether so many calls were affected that it is no accident: at least HealthyMinCalls, and more than
// HealthyMaxShare of all.
func (f Affected) Pattern() bool {
	return f.Calls >= HealthyMinCalls && f.Share > HealthyMaxShare
}

// UnexplainedWaits claims the time in which slow calls waited for the server and no source says for what. Calls that
// queued behind such a call are among them.
func (n *Node) UnexplainedWaits() Claim {
	cl := n.Claim(func(_ account.Account, s account.Segment) bool { return IsUnexplainedWait(s) })
	cl.Eliminated = true
	return cl
}

// IsUnexplainedWait reports whether a segment is a wait whose reason no source saw.
func IsUnexplainedWait(s account.Segment) bool {
	switch s.State {
	case account.Unexplained, account.PoolWait, account.Handshake, account.Withheld:
		return true
	}
	return s.Actor == account.Server && s.State == account.Busy && s.Suspect < 0
}
