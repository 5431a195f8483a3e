package cause

import (
	"fmt"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
)

// lateCalls is the evidence that every cause at the client's end has: how many calls, whose, and that the reply was
// there.
func (f *Finding) lateCalls(n *facts.Node, l *facts.Late, why string) *facts.Caller {
	c := n.CallerOf(l.PIDs[0])
	more := ""
	if k := len(l.PIDs) - 1; k > 0 {
		more = fmt.Sprintf(" and %d other processes", k)
	}
	f.support(recording.SourceTap, fmt.Sprintf("the replies to %d of %d slow calls were in the sockets of %s%s, on "+
		"%d connections, %s: up to %s in one call",
		l.Calls, len(n.Ledger.Slow), c.Name, more, n.SlowConns(c.PID), why, facts.Dur(l.MaxNs)), float64(l.Calls),
		"calls")
	return c
}
