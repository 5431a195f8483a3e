package account

import (
	"sort"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/recording"
)

// duplicates finds calls that were recorded more than once: from both ends without being joined, where the client's
// view includes the server's; and by SLOWLOG and the tap.
type duplicates struct {
	clientViews map[viewKey][]span // ordered by begin; to is the latest end of all until then
	tap         []recording.Call   // ordered by begin
	longestNs   int64              // of tap
}

type viewKey struct{ conn, op string }

func newDuplicates(rec *recording.Recording) *duplicates {
	d := &duplicates{clientViews: map[viewKey][]span{}}
	for _, c := range rec.Calls { // ordered by their begin
		if c.Source != recording.SourceTap {
			continue
		}
		d.tap = append(d.tap, c)
		d.longestNs = max(d.longestNs, c.EndNs-c.IntendedNs)
		if c.Side != recording.Server {
			k := viewKey{c.Conn, c.Op}
			s := span{c.IntendedNs, c.EndNs}
			if n := len(d.clientViews[k]); n > 0 {
				s.to = max(s.to, d.clientViews[k][n-1].to)
			}
			d.clientViews[k] = append(d.clientViews[k], s)
		}
	}
	return d
}

// ofClientView reports whether the call is a server's view of one that the client's end recorded too.
func (d *duplicates) ofClientView(c recording.Call) bool {
	if c.Source != recording.SourceTap || c.Side != recording.Server {
		return false
	}
	list := d.clientViews[viewKey{c.Conn, c.Op}]
	i := sort.Search(len(list), func(i int) bool { return list[i].from > c.IntendedNs })
	return i > 0 && list[i-1].to >= c.EndNs
}

// recorded reports whether the call of a command that the server logged was recorded by the tap.
func (d *duplicates) recorded(s Suspect) bool {
	i := sort.Search(len(d.tap), func(i int) bool { return d.tap[i].IntendedNs > s.ToNs })
	for i--; i >= 0 && d.tap[i].IntendedNs >= s.FromNs-d.longestNs; i-- {
		c := &d.tap[i]
		if c.EndNs >= s.FromNs && c.Node == s.Node && (s.Client == "" || s.Client == c.Conn) &&
			sameOp(c.Op, s.Command) && float64(c.EndNs-c.IntendedNs) >= degree.NearlyAll*float64(s.DurationNs) {
			return true
		}
	}
	return false
}
