package facts

import (
	"slowpath/internal/diagnose/account"
	"slowpath/internal/recording"
)

// Claim is what a cause explains of the slow calls.
type Claim struct {
	Calls int   // slow calls with at least a tenth of their excess explained
	Ns    int64 // excess explained, each call by its weight
	MaxNs int64 // most in one call
	// Of these the calls of the server's users, which the kernel source sees, and the others: the probe's, and commands
	// that the server logged.
	Users, Probe Affected
}

// Felt is what one kind of caller felt of something.
type Affected struct {
	Calls    int     // slow calls
	AllCalls int     // all calls, slow or not
	Share    float64 // of them; where only a part of the slow calls was recorded, those stand for the rest
	MaxNs    int64   // most in one call
}

// Claim adds up the segments of this node's slow calls that match; of each call at most its excess.
func (n *Node) Claim(match func(account.Account, account.Segment) bool) Claim {
	return n.ClaimOf(func(a account.Account) int64 {
		var ns int64
		for _, s := range a.Segments {
			if match(a, s) {
				ns += s.Ns()
			}
		}
		return ns
	})
}

// ClaimOf adds up what a cause explains of each of this node's slow calls; of each call at most its excess.
func (n *Node) ClaimOf(explained func(account.Account) int64) Claim {
	var cl Claim
	weighted := 0.0
	for _, a := range n.Ledger.Slow {
		if a.Call.Node != n.Address {
			continue
		}
		ns := min(explained(a), a.ExcessNs)
		if ns <= 0 {
			continue
		}
		weighted += float64(ns) * a.Weight
		cl.MaxNs = max(cl.MaxNs, ns)
		of := &cl.Probe
		if a.Call.Source == recording.SourceTap {
			of = &cl.Users
		}
		of.MaxNs = max(of.MaxNs, ns)
		if ns*10 >= a.ExcessNs {
			cl.Calls++
			of.Calls++
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

// InState claims the time that slow calls spent with the server in a state.
func (n *Node) InState(state string) Claim {
	return n.Claim(func(_ account.Account, s account.Segment) bool {
		return s.Actor == account.Server &&
			s.State == state
	})
}

// Open claims the time that nothing explains.
func (n *Node) Unexplained() Claim {
	return n.Claim(func(_ account.Account, s account.Segment) bool { return s.State == account.Unexplained })
}

// TapClaim claims of the slow calls that the kernel source saw; explained gives the nanoseconds of one call.
func (n *Node) TapClaim(explained func(account.Account) int64) Claim {
	return n.ClaimOf(func(a account.Account) int64 {
		if a.Call.Source != recording.SourceTap {
			return 0
		}
		return explained(a)
	})
}

// Matters reports whether a claim is worth a finding: one short stall is no pattern. The probe calls rarely and at
// random, so that three of its calls say much; of the users' thousands of calls three say nothing.
func (c Claim) Matters() bool {
	return c.MaxNs >= maxHealthyWaitNs || c.Probe.Calls >= HealthyMinCalls || c.Users.Pattern()
}

// Pattern reports whether so many calls were affected that it is no accident.
func (f Affected) Pattern() bool {
	return f.Calls >= HealthyMinCalls && f.Share > HealthyMaxShare
}

// materialNs is the longest wait that may happen now and then in a system that is well.
const maxHealthyWaitNs = int64(20e6)

// Waited claims the time in which slow calls waited for the server and nothing says for what: calls queued behind such
// a call are among them.
func (n *Node) UnexplainedWaits() Claim {
	return n.Claim(func(_ account.Account, s account.Segment) bool { return IsUnexplainedWait(s) })
}

func IsUnexplainedWait(s account.Segment) bool {
	switch {
	case s.State == account.Unexplained, s.State == account.PoolWait, s.State == account.Handshake,
		s.State == account.Withheld:
		return true
	}
	return s.Actor == account.Server && s.State == account.Busy && s.Suspect < 0
}
