package facts

import "slowpath/internal/recording/series"

// connectionCommands is how many commands a new connection costs a server's process beside those that are sent on it:
// the accept, the set-up and the close.
// Bound: measured, PING by redis-benchmark -c 1, with -k 0 and without, on 5.0.6: 20.7 and 6.2 µs of used_cpu each.
const connectionCommands = 2.5

// OwnCost is what slowpath's own calls and connections cost a server.
type OwnCost struct {
	// Ns is the CPU time of the server's process, in nanoseconds.
	Ns float64
	// Seconds is the time between the polls that it was counted in.
	Seconds float64
	// Share is the share of slowpath in the commands and connections of that time. The process's CPU time is divided by
	// it, also that of its work of its own: on an idle server it is all taken for slowpath's.
	Share float64
}

// OwnCost estimates it from INFO; ok is false where INFO has no CPU time.
func (n *Node) OwnCost() (c OwnCost, ok bool) {
	cpu, commands := n.Series(series.UsedCPUUser), n.Series(series.TotalCommandsProcessed)
	if len(cpu) < 2 || len(commands) < 2 {
		return c, false
	}
	from, to := cpu[0].TimeNs, cpu[len(cpu)-1].TimeNs
	p := n.ProbeCalls(from, to)
	own := p.Kept + (CommandsPerFresh+connectionCommands)*p.Fresh + commandsPerPoll*n.Growth(series.OwnPolls)
	all := commands.Growth() + connectionCommands*n.Growth(series.TotalConnectionsReceived)
	c.Share = min(own/max(all, own, 1), 1)
	c.Ns = c.Share * 1e9 * (cpu.Growth() + n.Growth(series.UsedCPUSys))
	c.Seconds = float64(to-from) / 1e9
	return c, c.Seconds > 0
}
