package account

import (
	"sort"

	"slowpath/internal/recording"
)

// twins finds calls that were recorded from both ends without being joined: the client's view holds the server's.
type twins struct {
	byConn  map[[2]string][]span
	tap     []recording.Call
	longest int64
}

type span struct{ from, to int64 }

func newTwins(rec *recording.Recording) *twins {
	t := &twins{byConn: map[[2]string][]span{}}
	for _, c := range rec.Calls { // ordered by their begin
		if c.Source != recording.SourceTap {
			continue
		}
		t.tap = append(t.tap, c)
		t.longest = max(t.longest, c.EndNs-c.IntendedNs)
		if c.Side != recording.Server {
			k := [2]string{c.Conn, c.Op}
			s := span{c.IntendedNs, c.EndNs}
			if n := len(t.byConn[k]); n > 0 {
				s.to = max(s.to, t.byConn[k][n-1].to) // of all until then
			}
			t.byConn[k] = append(t.byConn[k], s)
		}
	}
	return t
}

// has reports whether the call is a server's view of one that the client's end recorded too.
func (t *twins) has(c recording.Call) bool {
	if c.Source != recording.SourceTap || c.Side != recording.Server {
		return false
	}
	list := t.byConn[[2]string{c.Conn, c.Op}]
	i := sort.Search(len(list), func(i int) bool { return list[i].from > c.IntendedNs })
	return i > 0 && list[i-1].to >= c.EndNs
}

// saw reports whether the call of a command that the server logged was recorded by the kernel source.
func (t *twins) saw(s Suspect) bool {
	i := sort.Search(len(t.tap), func(i int) bool { return t.tap[i].IntendedNs > s.ToNs })
	for i--; i >= 0 && t.tap[i].IntendedNs >= s.FromNs-t.longest; i-- {
		c := t.tap[i]
		if c.EndNs >= s.FromNs && c.Node == s.Node && (s.Client == "" || s.Client == c.Conn) && sameOp(c.Op,
			s.Command) && (c.EndNs-c.IntendedNs)*5 >= s.DurationNs*4 {
			return true
		}
	}
	return false
}

func sameOp(op, command string) bool {
	return op == command || sameCommand(command, op) || sameCommand(op, command)
}
