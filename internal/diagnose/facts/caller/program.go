package caller

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// programOf is several processes (or hosts) that run the same program as one Caller, whose connections are those of
// all. Each of them may do something too seldom to be a pattern. It is the first of them with respect to what only one
// process has, such as its id.
func programOf(callers []*Caller) *Caller {
	c := &Caller{
		Name: callers[0].Name, PID: callers[0].PID, Comm: callers[0].Comm, Processes: len(callers),
	}
	thing := "hosts"
	if c.PID != 0 {
		thing = "processes"
		c.Name = c.Comm
	}
	c.Name = fmt.Sprintf("%s (%d %s)", c.Name, len(callers), thing)
	for _, one := range callers {
		c.Conns = append(c.Conns, one.Conns...)
	}
	slices.SortStableFunc(c.Conns, func(a, b *Conn) int { return cmp.Compare(a.OpenNs, b.OpenNs) })
	return c
}

// Programs are callers grouped by what they run: processes by their name, hosts and processes alike by the handshake of
// their connections, which shows the library and its settings. Of each group there are at least two.
func Programs(callers []*Caller) (out []*Caller) {
	groups := map[string][]*Caller{}
	for _, c := range callers {
		key := c.Comm + "\x00" + CommonHandshake(c.Conns)
		groups[key] = append(groups[key], c)
	}
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		if same := groups[key]; len(same) > 1 {
			out = append(out, programOf(same))
		}
	}
	return out
}

// ByOwner are connections by the process or host whose they are.
func ByOwner(conns []*Conn) map[*Caller][]*Conn {
	out := map[*Caller][]*Conn{}
	for _, k := range conns {
		out[k.Owner] = append(out[k.Owner], k)
	}
	return out
}
