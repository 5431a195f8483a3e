package account

import (
	"maps"
	"slices"
	"strings"

	"slowpath/internal/recording"
)

// Hop is a node on the way of calls: a proxy that passes them on, or the server at the end.
type Hop struct {
	Node string
	// Process is the name of the process that answers there; empty where it is not known.
	Process string
	Proxy   bool
}

// hops are the proxies among the nodes, and the nodes that these call.
type hops struct {
	processes map[string]recording.ProcessOfNode // by node, those on this host
	proxies   map[string]bool                    // nodes whose process was seen to be a proxy
	nodeOf    map[int]string                     // the node of a proxy, by its process id
	next      map[string]map[string]bool         // by proxy, the nodes that it calls
	others    map[string]bool                    // nodes that others call, too
	// watched are the processes that the host source watched, by node: of a proxy itself, or of a server behind it.
	watched map[string]int
}

// maxProxies is of how many proxies calls are joined: more than somebody watches at once.
// Bound: arithmetic, it bounds the work on a recording of somebody else.
const maxProxies = 64

func readHops(rec *recording.Recording) *hops {
	h := &hops{
		processes: map[string]recording.ProcessOfNode{}, proxies: map[string]bool{}, nodeOf: map[int]string{},
		next: map[string]map[string]bool{}, others: map[string]bool{}, watched: map[string]int{},
	}
	for _, s := range rec.Snapshots {
		if s.Source != recording.SourceHost || strings.HasPrefix(s.Subject, recording.ProcessPrefix) {
			continue
		}
		p, ok := recording.BodyOf[recording.ProcessOfNode](s)
		switch {
		case !ok:
		case s.Name == recording.SnapshotProxy && (len(h.proxies) < maxProxies || h.proxies[s.Subject]):
			h.processes[s.Subject], h.proxies[s.Subject], h.nodeOf[p.PID] = p, true, s.Subject
		case s.Name == "process":
			h.watched[s.Subject] = p.PID
			if !h.proxies[s.Subject] {
				h.processes[s.Subject] = p
			}
		}
	}
	if len(h.proxies) == 0 {
		return h
	}
	h.readConnections(rec)
	for i := range rec.Calls {
		if c := &rec.Calls[i]; c.Source == recording.SourceTap {
			if from := h.caller(c); from != "" && from != c.Node {
				h.calls(from, c.Node)
			}
		}
	}
	return h
}

// readConnections finds out whose the connections are that were in use.
func (h *hops) readConnections(rec *recording.Recording) {
	ofProxies, nodeOf := map[string]bool{}, map[string]string{} // by connection
	for _, s := range rec.Snapshots {
		if s.Source != recording.SourceTap || s.Name != recording.SnapshotEnds && s.Name != recording.SnapshotServed {
			continue
		}
		e, ok := recording.BodyOf[recording.ConnEnds](s)
		if !ok {
			continue
		}
		nodeOf[s.Subject] = e.Node
		if from := h.nodeOf[e.PID]; from != "" && from != e.Node {
			ofProxies[s.Subject] = true
			h.calls(from, e.Node)
		}
	}
	for conn, node := range nodeOf {
		if !ofProxies[conn] {
			h.others[node] = true
		}
	}
}

// caller is the node of the proxy that made a call; empty where no proxy among the nodes did.
func (h *hops) caller(c *recording.Call) string {
	pid, _ := recording.PIDOf(c.Client)
	return h.nodeOf[pid]
}

func (h *hops) calls(from, to string) {
	if h.next[from] == nil {
		h.next[from] = map[string]bool{}
	}
	h.next[from][to] = true
}

// inner are the nodes that only proxies among the nodes call: calls of these are parts of the calls of users.
func (h *hops) inner() map[string]bool {
	out := map[string]bool{}
	for _, next := range h.next {
		for node := range next {
			out[node] = !h.others[node]
		}
	}
	return out
}

// hidesServer reports whether what is known of the process at a node is about a server behind the proxy there.
func (h *hops) hidesServer(node string) bool {
	return !h.proxies[node] || h.watched[node] != h.processes[node].PID
}

// IsProxy reports whether a process of this host answers at a node and passes calls on.
func (l *Ledger) IsProxy(node string) bool { return l.hops.proxies[node] }

// OnlyProxiesCall reports whether all calls of a node were made by proxies among the nodes.
func (l *Ledger) OnlyProxiesCall(node string) bool { return l.hops.inner()[node] }

// MixesOwnCalls reports whether slowpath's own calls through a proxy count as users': the proxy takes no names of
// connections, and a node that it calls has other callers, too.
func (l *Ledger) MixesOwnCalls(node string) bool {
	return l.hops.processes[node].Unnamed &&
		slices.ContainsFunc(l.Next(node), func(next string) bool { return !l.OnlyProxiesCall(next) })
}

// Next are the nodes that a proxy calls, in order; nil where that was not seen, and where it may call others.
func (l *Ledger) Next(node string) []string {
	if l.hops.processes[node].Elsewhere > 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(l.hops.next[node]))
}

// ProcessAt is the name of the process that answers at a node; empty where it is not known.
func (l *Ledger) ProcessAt(node string) string { return l.hops.processes[node].Comm }

// IsProxyProcess reports whether a process of this host is a proxy among the nodes.
func (l *Ledger) IsProxyProcess(pid int) bool { return l.hops.nodeOf[pid] != "" }

// PIDAt is the id of the process of ProcessAt.
func (l *Ledger) PIDAt(node string) int { return l.hops.processes[node].PID }

// IsHopProcess reports whether a process of this host is a proxy among the nodes, or a server that one calls.
func (l *Ledger) IsHopProcess(pid int) bool {
	for node, p := range l.hops.processes {
		if p.PID == pid && pid != 0 && l.hops.passed(node) {
			return true
		}
	}
	return false
}

// passed reports whether calls come to a node through a proxy, or go on from there.
func (h *hops) passed(node string) bool {
	_, behind := h.inner()[node]
	return behind || len(h.next[node]) > 0
}

// IsPart reports whether a slow call is a part of one at a proxy; see Ledger.Root.
func (a *Account) IsPart() bool { return a.outer > 0 }

// Root is the slow call of a user, or of slowpath, of which a slow call is a part: itself where no proxy made it.
func (l *Ledger) Root(i int) int {
	for l.Slow[i].IsPart() {
		i = l.Slow[i].outer - 1
	}
	return i
}

// Calls is the number of slow calls of users and of slowpath: of a call that proxies pass on, only the first.
func (l *Ledger) Calls() (n int) {
	for i := range l.Slow {
		if !l.Slow[i].IsPart() {
			n++
		}
	}
	return n
}

// Chain are the nodes that calls pass, in their order, where at least one is a proxy that calls another: those that
// users call come first. Nil: there is none.
func (l *Ledger) Chain(nodes []string) (out []Hop) {
	depth := l.hops.depths()
	for _, n := range nodes {
		if l.hops.passed(n) {
			out = append(out, Hop{n, l.hops.processes[n].Comm, l.hops.proxies[n]})
		}
	}
	slices.SortStableFunc(out, func(a, b Hop) int { return depth[a.Node] - depth[b.Node] })
	return out
}

// depths are how many proxies calls pass before a node, on the longest way.
func (h *hops) depths() map[string]int {
	depth := map[string]int{}
	for range h.next { // a loop among proxies ends, too
		for from, next := range h.next {
			for to := range next {
				depth[to] = max(depth[to], min(depth[from], len(h.next))+1)
			}
		}
	}
	return depth
}
