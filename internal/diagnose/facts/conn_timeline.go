package facts

import (
	"cmp"
	"slices"
	"strings"
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

// stepsOf is the use of a connection from look to look.
func stepsOf(c *Conn, startNs int64) (out []TimelineStep) {
	last := ConnSample{TimeNs: max(c.OpenNs, startNs)}
	for _, u := range c.Samples {
		out = append(out, TimelineStep{
			Span{last.TimeNs, u.TimeNs},
			u.Calls - last.Calls, u.InFlightNs - last.InFlightNs,
			u.IdleNs - last.IdleNs,
		})
		last = u
	}
	return out
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

// idleBefore is how long the connection was idle when it sent at a time. A look at it is taken then, if there was none
// within a second; one that was there before the watch and never used in it was idle all that time.
func (l ConnTimeline) idleBefore(sentNs int64) int64 {
	for i := len(l.Steps) - 1; i >= 0; i-- {
		if s := l.Steps[i]; s.ToNs <= sentNs+int64(100e6) {
			if sentNs-s.ToNs > LongIdleNs {
				return sentNs - s.ToNs
			}
			return s.IdleNs
		}
	}
	return 0
}
