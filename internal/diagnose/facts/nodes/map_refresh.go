package nodes

import (
	"time"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
	"slowpath/internal/topology/cost"
	"slowpath/internal/wire/cluster"
)

// MapRefresh is how the clients of a node ask it for the cluster map, without slowpath's own questions.
type MapRefresh struct {
	// Command is the command that takes most of the time; before 7.0 the likely one.
	Command cost.Command
	// SubcommandsMerged says that commandstats count all subcommands of CLUSTER as one (before 7.0).
	SubcommandsMerged bool
	// Calls is the number of questions.
	Calls float64
	// Usec is the time of all of them in microseconds.
	Usec float64
	// Share is that time as a share of the watch.
	Share float64
	// CPUShare is that time as a share of the CPU time that the main thread used.
	CPUShare float64
	// InfoCalls is the number of INFO calls.
	InfoCalls float64
	// ConnsOpened is the number of connections that were opened.
	ConnsOpened float64
	// Moved is the number of MOVED replies of all nodes; -1 where they are not counted (before 6.2).
	Moved float64
	// Lettuce says that Lettuce asks, by its names, or because each CLUSTER NODES comes with a new connection and an
	// INFO.
	Lettuce bool
	// OnNewConns says that as many connections were opened as the map was asked for.
	OnNewConns bool
	// Requesters is how often each process or host was seen to ask.
	Requesters facts.NameCounts
	// Library is the library that asks; empty where it is unknown.
	Library string
}

// MapRefreshOf is that of the watch.
func MapRefreshOf(n *facts.Node) (r MapRefresh) {
	r.Requesters, r.Moved = facts.NameCounts{}, movedReplies(n.Case)
	most := -1.0
	for name, command := range facts.MapCommands {
		stat := series.InCommandstats(name)
		calls, usec := n.Growth(series.CommandCalls(stat)), n.Growth(series.CommandUsec(stat))
		r.Calls, r.Usec = r.Calls+calls, r.Usec+usec
		if calls > 0 && usec > most {
			most, r.Command = usec, command
		}
	}
	if s := n.Series(series.CommandCalls("cluster")); len(s) > 0 && most < 0 {
		r.SubcommandsMerged = true
		r.Calls, r.Usec = max(s.Growth()-n.Growth(series.OwnPolls), 0), n.Growth(series.CommandUsec("cluster"))
		r.Command = likelyMapCommand(n)
	}
	r.Calls = max(r.Calls-ownMaps(n), 0)
	r.Share = r.Usec / 1e6 / n.Seconds()
	if cores, _, ok := mainthread.MainCores(n); ok && cores > 0 {
		r.CPUShare = min(1, r.Share/cores)
	}
	r.InfoCalls = max(n.Growth(series.CommandCalls("info"))-n.Growth(series.OwnPolls), 0)
	r.ConnsOpened = max(n.Growth(series.TotalConnectionsReceived)-connection.ProbeCallsOf(n, n.StartNs, n.EndNs).Fresh,
		0)
	r.OnNewConns = SameCount(r.ConnsOpened, r.Calls)
	findRequesters(n, &r)
	r.Lettuce = r.Lettuce || r.OnNewConns && r.Command == cost.Nodes && SameCount(r.InfoCalls, r.Calls)
	if r.Lettuce {
		r.Library = "lettuce"
	}
	return r
}

// ownMaps is how often slowpath itself asked for the map during the watch.
func ownMaps(n *facts.Node) (count float64) {
	for _, s := range n.Rec.Snapshots {
		if s.Source == recording.SourceServer && s.Subject == n.Address && s.Name == "cluster-nodes" &&
			s.TimeNs > n.StartNs {
			count++
		}
	}
	return count
}

// SameCount reports whether two counts are about equal, as of the same thing with different begins.
func SameCount(a, b float64) bool { return b > 0 && min(a, b) >= degree.NearlyAll*max(a, b) }

// PerCall is the time that one question takes of the main thread.
func (r MapRefresh) PerCall() time.Duration {
	return time.Duration(r.Usec / max(r.Calls, 1) * float64(time.Microsecond))
}

// likelyMapCommand is what CLUSTER stands for where the server does not say: what the tap saw most, else
// NODES, which takes most on such a server.
func likelyMapCommand(n *facts.Node) cost.Command {
	seen := map[cost.Command]int64{}
	for name, c := range facts.MapCommands {
		seen[c] += mainthread.TapCalls(n, name)
	}
	best := cost.Nodes
	for _, c := range []cost.Command{cost.Slots, cost.Shards} {
		if seen[c] > seen[best] {
			best = c
		}
	}
	return best
}

// MapSize is the size of the cluster map that the node has, and its number of replicas, as far as it reported them.
func MapSize(n *facts.Node) (s cost.Size, replicas int) {
	if snap, ok := n.Rec.SnapshotOf(recording.SourceServer, n.Address, "cluster-nodes"); ok {
		if m, err := cluster.ParseNodes(snap.Body); err == nil {
			s = cost.SizeOf(m)
			return s, s.Nodes - s.Masters
		}
	}
	nodes, _ := n.Series(series.ClusterKnownNodes).Last()
	masters, _ := n.Series(series.ClusterSize).Last()
	s = cost.Size{Nodes: int(nodes), Masters: int(masters), Ranges: int(masters), Entries: int(nodes)}
	return s, s.Nodes - s.Masters
}
