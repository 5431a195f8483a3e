package facts

import "slowpath/internal/recording"

// AdminCommand is a command that changed the server, as the tap saw it.
type AdminCommand struct {
	Span
	// Command is its name, "CONFIG SET"; its arguments are not known.
	Command string
	// Who sent it.
	Who Who
}

// AdminCommands are those that were sent to the node, in order of time.
func (n *Node) AdminCommands() []AdminCommand {
	return Once(n, "admin commands", func(n *Node) (out []AdminCommand) {
		for _, e := range n.Events(recording.SourceTap, recording.KindAdminCommand) {
			d := recording.DetailOf[recording.AdminCommandDetail](e)
			out = append(out, AdminCommand{
				Span{e.TimeNs, e.TimeNs + e.DurationNs}, d.Op, n.Who(d.Client, d.Process, e.TimeNs),
			})
		}
		return out
	})
}
