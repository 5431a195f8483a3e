package account

import (
	"cmp"
	"encoding/json"
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
		var p recording.ProcessOfNode
		if s.Source != recording.SourceHost || s.Name != "process" && s.Name != recording.SnapshotProxy ||
			strings.HasPrefix(s.Subject, recording.ProcessPrefix) || json.Unmarshal([]byte(s.Body), &p) != nil {
			continue
		}
		if s.Name == recording.SnapshotProxy {
			if len(h.proxies) >= maxProxies && !h.proxies[s.Subject] {
				continue
			}
			h.processes[s.Subject], h.proxies[s.Subject], h.nodeOf[p.PID] = p, true, s.Subject
			continue
		}
		h.watched[s.Subject] = p.PID
		if !h.proxies[s.Subject] {
			h.processes[s.Subject] = p
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
		var e recording.ConnEnds
		if s.Source != recording.SourceTap || s.Name != recording.SnapshotEnds && s.Name != recording.SnapshotServed ||
			json.Unmarshal([]byte(s.Body), &e) != nil {
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

// join finds for each slow call of a proxy the call at the proxy before, of which it is a part: one of the same command
// that was under way all the time, and as little longer as any. Where a proxy waited, it calls only one node, and no
// slow call of its own is known, implied makes one; nil: none.
func (h *hops) join(slow []Account, implied func(at string, of Account, s Segment) (Account, bool)) []Account {
	depth := h.depths()
	var proxies []string
	for node := range h.next {
		proxies = append(proxies, node)
	}
	slices.SortFunc(proxies, func(a, b string) int {
		return cmp.Or(depth[a]-depth[b], strings.Compare(a, b))
	})
	for _, proxy := range proxies {
		h.joinAt(proxy, slow)
		for i := 0; i < len(slow) && len(h.next[proxy]) == 1; i++ {
			if slow[i].Call.Node != proxy {
				continue
			}
			for next := range h.next[proxy] {
				for _, s := range slices.Clone(slow[i].Segments) {
					if a, ok := implied(next, slow[i], s); ok && isPassedOn(s) {
						a.outer = i + 1
						slow[i].inner = append(slow[i].inner, len(slow))
						slow[i].forwards(a.Call)
						slow = append(slow, a)
					}
				}
			}
		}
	}
	return inOrder(slow)
}

// joinAt joins the calls that a proxy made with those that it got.
func (h *hops) joinAt(proxy string, slow []Account) {
	var got []int
	for i := range slow {
		if slow[i].Call.Node == proxy {
			got = append(got, i)
		}
	}
	index := newTimeIndex(len(got), func(i int) (int64, int64) {
		return slow[got[i]].Call.IntendedNs, slow[got[i]].Call.EndNs
	})
	taken := map[innerOf]bool{}
	for i, a := range slow {
		if a.Call.Source != recording.SourceTap || h.caller(&a.Call) != proxy || !h.next[proxy][a.Call.Node] {
			continue
		}
		best, slack := -1, int64(0)
		for _, k := range index.touching(a.Call.IntendedNs, a.Call.EndNs) {
			of := slow[got[k]].Call
			before, after := a.Call.IntendedNs-of.StartNs, of.EndNs-a.Call.EndNs
			if before > 0 && after >= 0 && !taken[innerOf{got[k], a.Call.Node}] && sameOp(a.Call.Op, of.Op) &&
				(best < 0 || before+after < slack) {
				best, slack = got[k], before+after
			}
		}
		if best >= 0 {
			slow[i].outer = best + 1
			taken[innerOf{best, a.Call.Node}] = true
			slow[best].inner = append(slow[best].inner, i)
			slow[best].forwards(a.Call)
		}
	}
}

// inOrder puts accounts in the order of time again.
func inOrder(slow []Account) []Account {
	order := make([]int, len(slow))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(slow[a].Call.IntendedNs, slow[b].Call.IntendedNs)
	})
	at := make([]int, len(slow))
	for now, before := range order {
		at[before] = now
	}
	out := make([]Account, len(slow))
	for now, before := range order {
		a := slow[before]
		if a.IsPart() {
			a.outer = at[a.outer-1] + 1
		}
		for k, i := range a.inner {
			a.inner[k] = at[i]
		}
		out[now] = a
	}
	return out
}

// forwards books the open time in which a call at a proxy waited for one that the proxy made.
func (a *Account) forwards(inner recording.Call) {
	var out []Segment
	for _, g := range a.Segments {
		from, to := max(g.FromNs, inner.IntendedNs), min(g.ToNs, inner.EndNs)
		if !isPassedOn(g) || from >= to {
			out = append(out, g)
			continue
		}
		if g.FromNs < from {
			out = append(out, cut(g, g.FromNs, from))
		}
		out = append(out, Segment{recording.Proxy, recording.Forward, from, to, inner.Node, -1})
		if to < g.ToNs {
			out = append(out, cut(g, to, g.ToNs))
		}
	}
	a.Segments = out
}

// isPassedOn: time of a call at a proxy in which that may have waited for the next node.
func isPassedOn(s Segment) bool {
	return s.State == Unexplained || s.State == Withheld || s.State == recording.Forward && s.Culprit == ""
}

// innerOf is that a part of a call at a proxy went to a node.
type innerOf struct {
	outer int
	node  string
}

// IsProxy reports whether a process of this host answers at a node and passes calls on.
func (l *Ledger) IsProxy(node string) bool { return l.hops != nil && l.hops.proxies[node] }

// OnlyProxiesCall reports whether all calls of a node were made by proxies among the nodes.
func (l *Ledger) OnlyProxiesCall(node string) bool { return l.hops != nil && l.hops.inner()[node] }

// MixesOwnCalls reports whether slowpath's own calls through a proxy count as users': the proxy takes no names of
// connections, and a node that it calls has other callers, too.
func (l *Ledger) MixesOwnCalls(node string) bool {
	return l.hops != nil && l.hops.processes[node].Unnamed &&
		slices.ContainsFunc(l.Next(node), func(next string) bool { return !l.OnlyProxiesCall(next) })
}

// Next are the nodes that a proxy calls, in order; nil where that was not seen, and where it may call others.
func (l *Ledger) Next(node string) []string {
	if l.hops == nil || l.hops.processes[node].Elsewhere > 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(l.hops.next[node]))
}

// ProcessAt is the name of the process that answers at a node; empty where it is not known.
func (l *Ledger) ProcessAt(node string) string {
	if l.hops == nil {
		return ""
	}
	return l.hops.processes[node].Comm
}

// IsProxyProcess reports whether a process of this host is a proxy among the nodes.
func (l *Ledger) IsProxyProcess(pid int) bool { return l.hops != nil && l.hops.nodeOf[pid] != "" }

// PIDAt is the id of the process of ProcessAt.
func (l *Ledger) PIDAt(node string) int {
	if l.hops == nil {
		return 0
	}
	return l.hops.processes[node].PID
}

// IsHopProcess reports whether a process of this host is a proxy among the nodes, or a server that one calls.
func (l *Ledger) IsHopProcess(pid int) bool {
	if l.hops == nil || pid == 0 {
		return false
	}
	for from, next := range l.hops.next {
		if l.hops.processes[from].PID == pid {
			return true
		}
		for to := range next {
			if l.hops.processes[to].PID == pid {
				return true
			}
		}
	}
	return false
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

// HopSegment is a segment and the node where that time passed: of a proxy's calls to the next node the proxy's own part
// is at the proxy, the way and the rest at the next.
type HopSegment struct {
	Segment
	Node string
}

// Whole are the segments of a slow call, with those of the calls that proxies made for it in the place of the time in
// which the proxies waited. What a proxy did is the proxy's, and no server's or client's.
func (l *Ledger) Whole(i int) []HopSegment {
	a := &l.Slow[i]
	out := make([]HopSegment, 0, len(a.Segments))
	for _, s := range a.Segments {
		if s.Actor == Server && l.IsProxy(a.Call.Node) {
			s.Actor = recording.Proxy
		}
		out = append(out, HopSegment{s, a.Call.Node})
	}
	for _, k := range a.inner {
		part := l.Whole(k)
		for j := range part {
			if s := &part[j]; s.Node == l.Slow[k].Call.Node && (s.Actor == Client || s.Actor == App) {
				s.Actor, s.Node = recording.Proxy, a.Call.Node
			}
		}
		out = within(out, part, l.Slow[k].Call.Node)
	}
	return out
}

// within puts the parts of a call that a proxy made to a node where the proxy waited for that.
func within(outer, part []HopSegment, node string) (out []HopSegment) {
	for _, g := range outer {
		waits := g.Actor == recording.Proxy && g.State == recording.Forward && g.Culprit == node
		at := g.FromNs
		for _, s := range part {
			from, to := max(s.FromNs, at), min(s.ToNs, g.ToNs)
			if !waits || from >= to {
				continue
			}
			if from > at {
				out = append(out, HopSegment{cut(g.Segment, at, from), g.Node})
			}
			out, at = append(out, HopSegment{cut(s.Segment, from, to), s.Node}), to
		}
		if at < g.ToNs {
			out = append(out, HopSegment{cut(g.Segment, at, g.ToNs), g.Node})
		}
	}
	return out
}

// Chain are the nodes that calls pass, in their order, where at least one is a proxy that calls another: those that
// users call come first. Nil: there is none.
func (l *Ledger) Chain(nodes []string) (out []Hop) {
	if l.hops == nil || len(l.hops.next) == 0 {
		return nil
	}
	depth := l.hops.depths()
	inner := l.hops.inner()
	for _, n := range nodes {
		if _, behind := inner[n]; behind || len(l.hops.next[n]) > 0 {
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
