package connection

import (
	"cmp"
	"slices"
	"sort"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
)

// request is a call from its send to its reply.
type request struct {
	conn     string
	from, to int64
}

// answeredRequests are those of the node's connections, by their begin: signs that the server answered somebody.
func answeredRequests(n *facts.Node, callers []*caller.Caller) (out []request) {
	for _, c := range n.Rec.Calls {
		if c.Node == n.Address && c.Error == "" {
			out = append(out, request{c.Conn, c.StartNs, c.EndNs})
		}
	}
	for _, c := range callers {
		for _, k := range c.Conns {
			if k.Handshake != nil { // its first round trips
				out = append(out, request{k.Client, k.OpenNs, k.OpenNs + k.FirstReplyNs - k.DialNs})
			}
		}
	}
	slices.SortFunc(out, func(a, b request) int { return cmp.Compare(a.from, b.from) })
	return out
}

// answeredMeanwhile reports whether requests on other connections were answered between two times.
func answeredMeanwhile(all []request, not *caller.Conn, from, to int64) bool {
	at := sort.Search(len(all), func(i int) bool { return all[i].from >= from })
	for _, s := range all[at:] {
		if s.from >= to {
			break
		}
		if s.to < to && s.conn != not.Client {
			return true
		}
	}
	return false
}
