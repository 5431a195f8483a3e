package caller

import (
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
)

// AdminCommand is a command that changed the server, as the tap saw it.
type AdminCommand struct {
	facts.Span
	// Command is its name, "CONFIG SET"; its arguments are not known.
	Command string
	// Who sent it.
	Who Who
}

// AdminCommands are those that were sent to the node, in order of time.
func AdminCommands(n *facts.Node) []AdminCommand {
	return facts.Once(n, "admin commands", func(n *facts.Node) (out []AdminCommand) {
		for _, e := range n.Events(recording.SourceTap, recording.KindAdminCommand) {
			d := recording.DetailOf[recording.AdminCommandDetail](e)
			out = append(out, AdminCommand{
				facts.Span{FromNs: e.TimeNs, ToNs: e.TimeNs + e.DurationNs},
				d.Op,
				WhoOf(n, d.Client, d.Process, e.TimeNs),
			})
		}
		return out
	})
}
