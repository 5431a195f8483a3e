package facts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/recording"
)

// Lane is a connection with who calls on it, and its use second by second.
type ConnTimeline struct {
	*Conn
	caller string // "app[1234]"
	Steps  []TimelineStep
}

// LaneStep is the use of a connection between two looks, at least a second. Times in nanoseconds.
type TimelineStep struct {
	Span
	Calls, InFlightNs, IdleNs int64
}

// Whose is the address of a connection with the process behind it, where that is known.
func ClientLabel(client, process string) string {
	if process == "" || strings.HasPrefix(client, process) {
		return client
	}
	return client + " (" + process + ")"
}

func (l ConnTimeline) Label() string { return ClientLabel(l.Client, l.caller) }

// Lanes are the connections of callers, those with most time in flight first.
func (n *Node) Timelines() []ConnTimeline {
	var out []ConnTimeline
	for _, caller := range n.Callers() {
		for _, c := range caller.Conns {
			out = append(out, ConnTimeline{Conn: c, caller: caller.Name, Steps: stepsOf(c, n.StartNs)})
		}
	}
	slices.SortStableFunc(out, func(a, b ConnTimeline) int { return cmp.Compare(b.InFlightNs, a.InFlightNs) })
	return out
}

// InFlight is the time in nanoseconds that callers waited for replies, each connection for itself.
func TotalInFlightNs(lanes []ConnTimeline) float64 {
	ns := int64(0)
	for _, l := range lanes {
		ns += l.InFlightNs
	}
	return float64(max(ns, 1))
}

// TapClaim claims of the slow calls that the kernel source saw; explained gives the nanoseconds of one call.
func (n *Node) TapClaim(explained func(account.Account) int64) Claim {
	return n.ClaimOf(func(a account.Account) int64 {
		if a.Call.Source != recording.SourceTap {
			return 0
		}
		return explained(a)
	})
}

// Within is the part of a call's segments that match, in some stretches of time.
func (s Spans) SegmentsNs(a account.Account, match func(account.Segment) bool) (ns int64) {
	for _, g := range a.Segments {
		if match(g) {
			ns += s.OverlapNs(g.FromNs, g.ToNs)
		}
	}
	return ns
}

// Tally counts names.
type NameCounts map[string]int

func (t NameCounts) Total() (all int) {
	for _, k := range t {
		all += k
	}
	return all
}

// Top are the most frequent names.
func (t NameCounts) Top(n int) []string {
	var names []string
	for name := range t {
		if name != "" {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(t[b], t[a]), cmp.Compare(a, b)) })
	return names[:min(n, len(names))]
}

// List joins the most frequent names for people.
func (t NameCounts) List(n int) string {
	s := strings.Join(t.Top(n), ", ")
	if more := len(t) - n; more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return s
}
