package live

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"

	"slowpath/internal/recording"
)

// Edge is the calls of users that a caller made to a node in a time.
type Edge struct {
	Caller  string            // as Caller.Name
	Program recording.Program // what it runs, and for whom, where it is a process of this host and that is known
	Library string            // of its connections, "redis-py 5.0.1"; empty: not known
	Node    string
	Calls   int64
	Slow    int64
	LostNs  int64 // time of its slow calls beyond the slow threshold
}

// maxEdges bounds the edges that are counted. Calls beyond them are those of otherCallers.
const maxEdges = 4096

// edge is that of a caller, by its key, to a node. v.mu is held.
func (v *View) edge(caller, comm, node string) *Edge {
	if len(node) == 0 {
		return &Edge{}
	}
	k := [2]string{caller, node}
	e := v.edges[k]
	if e == nil && len(v.edges) >= maxEdges {
		k = [2]string{otherCallers, node}
		e = v.edges[k]
	}
	if e == nil && len(v.edges) >= maxEdges+maxNodes {
		return &Edge{}
	}
	if e == nil {
		e = &Edge{Node: node}
		v.edges[k] = e
	}
	if e.Program.Name == "" { // it may be forgotten later
		if pid, err := strconv.Atoi(k[0]); err == nil {
			e.Program = v.programs[pid]
			comm = cmp.Or(e.Program.Comm, comm)
		}
		e.Caller = v.nameOf(k[0], comm)
	}
	return e
}

// edgeOf is that of a slow call. One that was seen at the server's end alone is of another host. v.mu is held.
func (v *View) edgeOf(c recording.Call) *Edge {
	if client, err := netip.ParseAddrPort(c.Conn); err == nil && c.Side == recording.Server {
		return v.edge(client.Addr().Unmap().String(), "", c.Node)
	}
	key, comm := v.keyOf(c.Conn, c.Client)
	return v.edge(key, comm, c.Node)
}

// TakeEdges are the edges that were counted since it was called before: it is for one reader. Those come first whose
// calls lost most.
func (v *View) TakeEdges() (out []Edge) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, e := range v.edges {
		if e.Calls > 0 || e.Slow > 0 {
			out = append(out, *e)
		}
	}
	clear(v.edges)
	slices.SortFunc(out, func(a, b Edge) int {
		return cmp.Or(cmp.Compare(b.LostNs, a.LostNs), cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Node, b.Node),
			cmp.Compare(a.Caller, b.Caller))
	})
	return out
}

// ProgramOf is what a process runs that a slow call names as its client: "app[812]".
func (v *View) ProgramOf(client string) (p recording.Program) {
	if pid, ok := recording.PIDOf(client); ok {
		v.mu.Lock()
		defer v.mu.Unlock()
		p = v.programs[pid]
	}
	return p
}
