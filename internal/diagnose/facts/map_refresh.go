package facts

import (
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"slowpath/internal/recording"
	"slowpath/internal/topology/cost"
	"slowpath/internal/wire/cluster"
)

// Refreshing is how the clients of a node ask it for the map of the cluster, without slowpath's own questions.
type MapRefresh struct {
	Command           cost.Command // the one that takes most; before 7.0 the likely one
	SubcommandsMerged bool         // before 7.0 commandstats count all subcommands of CLUSTER as one
	Calls             float64
	Usec              float64
	Share             float64 // of the time of the main thread
	CPUShare          float64 // of the CPU time that the main thread used
	InfoCalls         float64 // INFO, calls
	ConnsOpened       float64 // connections
	Moved             float64 // MOVED replies of all nodes; -1: not counted (before 6.2)
	// who asks is Lettuce, by its names, or because each CLUSTER NODES comes with a new connection and an INFO
	Lettuce    bool
	OnNewConns bool       // as many connections were opened as the map was asked for
	Requesters NameCounts // processes or hosts that ask
	Library    string
}

// mapCommands are the commands that write the map, as commandstats, SLOWLOG and the kernel source have them.
var mapCommands = map[string]cost.Command{
	"CLUSTER NODES": cost.Nodes, "CLUSTER SLOTS": cost.Slots,
	"CLUSTER SHARDS": cost.Shards,
}

// lettuceName is what Lettuce calls the connections over which it refreshes its topology
// (DefaultClusterTopologyRefresh).
const lettuceName = "lettuce#ClusterTopologyRefresh"

// IsMapCommand: of a server before 7.0 commandstats say CLUSTER of all subcommands.
func IsMapCommand(command string) bool {
	_, ok := mapCommands[command]
	return ok || command == "CLUSTER"
}

// Refreshing counts.
func (n *Node) MapRefresh() (r MapRefresh) {
	r.Requesters, r.Moved = NameCounts{}, n.Case.movedReplies()
	most := -1.0
	for name, command := range mapCommands {
		stat := "cmdstat_" + strings.ToLower(strings.ReplaceAll(name, " ", "|"))
		calls, usec := n.Growth(stat+".calls"), n.Growth(stat+".usec")
		r.Calls, r.Usec = r.Calls+calls, r.Usec+usec
		if calls > 0 && usec > most {
			most, r.Command = usec, command
		}
	}
	if s := n.Info("cmdstat_cluster.calls"); len(s) > 0 && most < 0 {
		r.SubcommandsMerged = true
		r.Calls, r.Usec = max(s.Growth()-n.Growth("self.polls"), 0), n.Growth("cmdstat_cluster.usec")
		r.Command = n.likelyMapCommand()
	}
	r.Calls = max(r.Calls-n.ownMaps(), 0)
	r.Share = r.Usec / 1e6 / n.Seconds()
	if cores, _, ok := n.MainCores(); ok && cores > 0 {
		r.CPUShare = min(1, r.Share/cores)
	}
	r.InfoCalls = max(n.Growth("cmdstat_info.calls")-n.Growth("self.polls"), 0)
	r.ConnsOpened = max(n.Growth("total_connections_received")-n.ProbeCalls(n.StartNs, n.EndNs).Fresh, 0)
	r.OnNewConns = SameCount(r.ConnsOpened, r.Calls)
	n.findRequesters(&r)
	r.Lettuce = r.Lettuce || r.OnNewConns && r.Command == cost.Nodes && SameCount(r.InfoCalls, r.Calls)
	if r.Lettuce {
		r.Library = "lettuce"
	}
	return r
}

// ownMaps is how often slowpath itself asked for the map during the watch.
func (n *Node) ownMaps() (count float64) {
	for _, s := range n.Rec.Snapshots {
		if s.Source == recording.SourceServer && s.Subject == n.Address && s.Name == "cluster-nodes" &&
			s.TimeNs > n.StartNs {
			count++
		}
	}
	return count
}

// About: two counts of the same thing, one of which may have begun a little earlier.
func SameCount(a, b float64) bool { return b > 0 && a >= 0.8*b && a <= 1.25*b }

// PerCall is what one call takes of the main thread.
func (r MapRefresh) PerCall() time.Duration {
	return time.Duration(r.Usec / max(r.Calls, 1) * float64(time.Microsecond))
}

// likelyMapCommand is what CLUSTER stands for where the server does not tell: what the kernel source saw most, else
// what SLOWLOG has, else NODES, which on such a server takes most.
func (n *Node) likelyMapCommand() cost.Command {
	seen := map[cost.Command]int64{}
	for name, c := range mapCommands {
		seen[c] += n.TapCalls(name)
	}
	for _, e := range n.Events(recording.SourceServer, recording.KindSlowlog) {
		if c, is := mapCommands[recording.DetailOf[recording.SlowlogDetail](e).Command]; is {
			seen[c]++
		}
	}
	best := cost.Nodes
	for _, c := range []cost.Command{cost.Slots, cost.Shards} {
		if seen[c] > seen[best] {
			best = c
		}
	}
	return best
}

// TapCalls is how many calls of a command the kernel source saw, at the end that saw most.
func (n *Node) TapCalls(op string) int64 {
	by := n.tapCallsBy(op)
	return max(by[recording.Client], by[recording.Server])
}

// tapCallsBy counts by the end that saw them: at the client's slowpath's own are not among them.
func (n *Node) tapCallsBy(op string) map[string]int64 {
	by := map[string]int64{}
	for _, h := range n.Rec.Histograms {
		side, of, ok := strings.Cut(h.Op, " ")
		if !ok || of != op || h.Source != recording.SourceTap || h.Node != n.Address && h.Node != "" {
			continue
		}
		if one, err := hdrhistogram.Decode(h.HDR); err == nil { // a damaged row is as good as none
			by[side] += one.TotalCount()
		}
	}
	return by
}

// whoRefreshes finds who asks: by the kernel source the process of each question that was slow or held the thread, by
// the server the clients whose last command it was or that name themselves so.
func (n *Node) findRequesters(r *MapRefresh) {
	for _, e := range n.Events(recording.SourceTap, recording.KindWork) {
		if d := recording.DetailOf[recording.WorkDetail](e); IsMapCommand(d.Op) {
			r.add(d.Process, d.Client, n)
		}
	}
	for _, c := range n.Rec.Calls {
		if c.Source == recording.SourceTap && c.Node == n.Address && IsMapCommand(c.Op) {
			r.add(c.Client, c.Conn, n)
		}
	}
	for _, e := range n.Events(recording.SourceServer, recording.KindSlowlog) {
		if d := recording.DetailOf[recording.SlowlogDetail](e); IsMapCommand(d.Command) {
			r.Lettuce = r.Lettuce || d.Name == lettuceName
			if len(r.Requesters) == 0 {
				r.add("", d.Client, n)
			}
		}
	}
	for _, c := range n.Clients() {
		if c.Name != lettuceName && !IsMapCommand(strings.ToUpper(strings.ReplaceAll(c.Cmd, "|", " "))) {
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
func (r *MapRefresh) add(process, client string, n *Node) {
	switch {
	case process != "":
		if !n.ownPIDs()[PIDOf(process)] {
			r.Requesters[process]++
			r.Lettuce = r.Lettuce || strings.HasPrefix(process, "lettuce-")
		}
	case client != "":
		r.Requesters[HostOf(client)]++
	}
}

// movedReplies are those of all nodes of the case, -1 where none of them counts errors by their kind.
func (c *Case) movedReplies() float64 {
	total, counted := 0.0, false
	for _, n := range c.Nodes {
		total += n.Growth("errorstat_MOVED.count")
		// A server from 6.2 on has the fields of errors as soon as there was one, and others of its version from the
		// start.
		counted = counted || len(n.Info("errorstat_MOVED.count")) > 0 || len(n.Info("total_error_replies")) > 0
	}
	if !counted {
		return -1
	}
	return total
}

// MapSize is the size of the map that the node holds, as far as it told.
func (n *Node) MapSize() (s cost.Size, replicas int) {
	if snap, ok := n.Rec.SnapshotOf(recording.SourceServer, n.Address, "cluster-nodes"); ok {
		if m, err := cluster.ParseNodes(snap.Body); err == nil {
			s = cost.SizeOf(m)
			return s, s.Nodes - s.Masters
		}
	}
	nodes, _ := n.Info("cluster_known_nodes").Last()
	masters, _ := n.Info("cluster_size").Last()
	s = cost.Size{Nodes: int(nodes), Masters: int(masters), Ranges: int(masters), Entries: int(nodes)}
	return s, s.Nodes - s.Masters
}

// Bounds of a storm.
const (
	// RefreshShare of the main thread's time is more than bookkeeping may take: a cluster whose clients asked for the
	// map too often was noticed at 18 %.
	MinRefreshShare = 0.05
	// perMoved questions of a node follow from each MOVED reply, at most: a client asks one node, or each node once.
	maxFetchesPerMoved = 1.0
)

// ByEvents reports whether the map is asked for because slots moved: each MOVED reply can make a client ask, and of one
// that asks all nodes each is asked once.
func (r MapRefresh) FollowsMoved() bool { return r.Moved > 0 && r.Calls <= maxFetchesPerMoved*r.Moved }

// RefreshPattern is the part of all calls' time that they wait for the map to be written, 0 where the map takes too
// little of the thread: calls come in at random and meet half of a question with the probability of the thread's share
// (M/G/1), and a thread without time left makes them queue for each other.
func (n *Node) RefreshWaitShare(r MapRefresh) float64 {
	if r.Share < MinRefreshShare {
		return 0
	}
	wait := r.Share * float64(r.PerCall()) / 2 / max(1-r.Share, 0.05)
	alone := wait
	if kept, ok := n.Ledger.Path(n.Address, "kept"); ok {
		alone = float64(kept.P50Ns)
	}
	share := wait / max(wait+alone, 1)
	if d, ok := n.Demand(); ok && d.Total() >= SaturatedDemand {
		if q, known := n.Queue(); known {
			share = max(share, q.Share()*r.CPUShare)
		}
		share = max(share, r.CPUShare*SaturatedRun)
	}
	return min(share, 1)
}
