package mainthread

import (
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/recording"
)

// DelayedReplies is the time in which the server had read calls of its clients, and slept before it answered: calls of
// commands that never block by themselves, on connections where no command before them does.
type DelayedReplies struct {
	facts.Claim
	// MaxNsByOp is the longest delay in nanoseconds by command.
	MaxNsByOp map[string]int64
}

// DelayedRepliesOf are those among the slow calls that the tap saw.
func DelayedRepliesOf(n *facts.Node) DelayedReplies {
	byOp, held := map[string]int64{}, connection.Held(n)
	cl := n.ClaimOf(func(a account.Account) (times facts.StateTimes) {
		name, _, _ := strings.Cut(a.Call.Op, " ")
		if a.Call.Source != recording.SourceTap || a.Call.Side == recording.Client || !neverBlocks(name) ||
			held[a.Call.Conn].OverlapNs(a.Call.IntendedNs, a.Call.EndNs) > 0 {
			return nil
		}
		read := false
		for _, s := range a.Segments {
			read = read || s.Actor == account.Server && s.State == account.Exec
			if read && (s.State == account.Withheld || s.State == account.Unexplained) &&
				s.Ns() >= minIdleServerWaitNs {
				times.Add(s, s.Ns())
			}
		}
		if ns := times.Ns(); ns > 0 {
			byOp[a.Call.Op] = max(byOp[a.Call.Op], ns)
		}
		return times
	})
	return DelayedReplies{cl, byOp}
}

// neverBlocks reports whether a command is known and has its reply when its work is done. Scripts and commands of
// modules may wait for something else.
func neverBlocks(name string) bool {
	return (account.ConstantTime(name) || storingCommands[name] || replyingCommands[name]) &&
		!facts.BlockingCommands[name] && !scriptCommands[name]
}
