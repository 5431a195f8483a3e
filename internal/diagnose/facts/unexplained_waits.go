package facts

import (
	"slowpath/internal/diagnose/account"
)

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
