package nodes

import (
	"strings"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/recording"
)

// lettuceName is the name of the connections over which Lettuce refreshes its topology (DefaultClusterTopologyRefresh).
const lettuceName = "lettuce#ClusterTopologyRefresh"

// findRequesters finds who asks: by the tap the process of each question that was slow or held the thread, by
// the server the clients whose last command it was or that are named so.
func findRequesters(n *facts.Node, r *MapRefresh) {
	for _, e := range n.Events(recording.SourceTap, recording.KindActivity) {
		if d := recording.DetailOf[recording.ActivityDetail](e); facts.IsMapCommand(d.Op) {
			r.add(d.Process, d.Client, n)
		}
	}
	for _, c := range n.Rec.Calls {
		if c.Source == recording.SourceTap && c.Node == n.Address && facts.IsMapCommand(c.Op) {
			r.add(c.Client, c.Conn, n)
		}
	}
	for _, e := range n.Events(recording.SourceServer, recording.KindSlowlog) {
		if d := recording.DetailOf[recording.SlowlogDetail](e); facts.IsMapCommand(d.Command) {
			r.Lettuce = r.Lettuce || d.Name == lettuceName
			if len(r.Requesters) == 0 {
				r.add("", d.Client, n)
			}
		}
	}
	for _, c := range caller.Clients(n) {
		if c.Name != lettuceName && !facts.IsMapCommand(strings.ToUpper(strings.ReplaceAll(c.Cmd, "|", " "))) {
			continue
		}
		r.Lettuce = r.Lettuce || c.Name == lettuceName || strings.HasPrefix(strings.ToLower(c.LibName), "lettuce")
		if c.LibName != "" {
			r.Library = strings.TrimSpace(c.LibName + " " + c.LibVer)
		}
		if len(r.Requesters) == 0 {
			r.add("", c.Addr, n)
		}
	}
}

// add counts a question. Lettuce names its threads, and of a JVM the kernel has the name of the thread that opened the
// connection.
func (r *MapRefresh) add(process, client string, n *facts.Node) {
	switch {
	case process != "":
		if !hosts.OwnPIDs(n.Case)[hosts.PIDOf(process)] {
			r.Requesters[process]++
			r.Lettuce = r.Lettuce || strings.HasPrefix(process, "lettuce-")
		}
	case client != "":
		r.Requesters[caller.HostTextOf(n.Case, client)]++
	}
}
