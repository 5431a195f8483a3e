package cause

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/recording"
)

// lane is a connection with who calls on it, and its use second by second.
type lane struct {
	*Conn
	caller string // "app[1234]"
	steps  []laneStep
}

// laneStep is the use of a connection between two looks, at least a second. Times in nanoseconds.
type laneStep struct {
	span
	calls, inFlightNs, idleNs int64
}

// whose is the address of a connection with the process behind it, where that is known.
func whose(client, process string) string {
	if process == "" || strings.HasPrefix(client, process) {
		return client
	}
	return client + " (" + process + ")"
}

func (l lane) who() string { return whose(l.Client, l.caller) }

// lanes are the connections of callers, those with most time in flight first.
func (n *Node) lanes() []lane {
	var out []lane
	for _, caller := range n.callers() {
		for _, c := range caller.Conns {
			out = append(out, lane{Conn: c, caller: caller.Name, steps: stepsOf(c, n.StartNs)})
		}
	}
	slices.SortStableFunc(out, func(a, b lane) int { return cmp.Compare(b.InFlightNs, a.InFlightNs) })
	return out
}

// inFlight is the time in nanoseconds that callers waited for replies, each connection for itself.
func inFlight(lanes []lane) float64 {
	ns := int64(0)
	for _, l := range lanes {
		ns += l.InFlightNs
	}
	return float64(max(ns, 1))
}

// tapClaim claims of the slow calls that the kernel source saw; explained gives the nanoseconds of one call.
func (n *Node) tapClaim(explained func(account.Account) int64) Claim {
	return n.claimOf(func(a account.Account) int64 {
		if a.Call.Source != recording.SourceTap {
			return 0
		}
		return explained(a)
	})
}

// within is the part of a call's segments that match, in some stretches of time.
func (s spans) within(a account.Account, match func(account.Segment) bool) (ns int64) {
	for _, g := range a.Segments {
		if match(g) {
			ns += s.in(g.FromNs, g.ToNs)
		}
	}
	return ns
}

// tally counts names.
type tally map[string]int

func (t tally) sum() (all int) {
	for _, k := range t {
		all += k
	}
	return all
}

// top are the most frequent names.
func (t tally) top(n int) []string {
	var names []string
	for name := range t {
		if name != "" {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(t[b], t[a]), cmp.Compare(a, b)) })
	return names[:min(n, len(names))]
}

// list joins the most frequent names for people.
func (t tally) list(n int) string {
	s := strings.Join(t.top(n), ", ")
	if more := len(t) - n; more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return s
}
