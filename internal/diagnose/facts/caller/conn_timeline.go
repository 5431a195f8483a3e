package caller

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/recording"
)

// ConnTimeline is the use of a connection, step by step.
type ConnTimeline struct {
	*Conn
	// "app[1234]"
	Caller  string
	StartNs int64 // of the watch
}

// PID is the process that calls; 0 where it is not on this host.
func (l ConnTimeline) PID() int { return hosts.PIDOf(l.Caller) }

// TimelineStep is the use of a connection between two samples, at least a second.
type TimelineStep struct {
	facts.Span
	// Calls is the number of calls that were answered.
	Calls int64
	// InFlightNs is the time with a call in flight, in nanoseconds.
	InFlightNs int64
	// IdleNs is the time without one, in nanoseconds.
	IdleNs int64
	// LongestIdleNs is the longest pause between two calls, in nanoseconds; IdleNs where it was not measured.
	LongestIdleNs int64
}

// Steps are the use between samples, in order of time.
func (l ConnTimeline) Steps() iter.Seq[TimelineStep] { return StepsOf(l.Conn, l.StartNs) }

// StepsOf is the use of a connection from sample to sample.
func StepsOf(c *Conn, startNs int64) iter.Seq[TimelineStep] {
	return func(yield func(TimelineStep) bool) {
		last := recording.ConnUse{TimeNs: max(c.OpenNs, startNs)}
		for u := range c.Samples() {
			step := TimelineStep{
				facts.Span{FromNs: last.TimeNs, ToNs: u.TimeNs},
				u.Calls - last.Calls, u.InFlightNs - last.InFlightNs, u.IdleNs - last.IdleNs, u.IdleMaxNs,
			}
			if u.IdleMaxNs < 0 {
				step.LongestIdleNs = step.IdleNs
			}
			if !yield(step) {
				return
			}
			last = u
		}
	}
}

// ClientLabel is the address of a client with its process, where that is known: "10.0.0.7:40312 (app[1234])".
func ClientLabel(client, process string) string {
	if process == "" || strings.HasPrefix(client, process) {
		return client
	}
	return client + " (" + process + ")"
}

// Label is the ClientLabel of the connection.
func (l ConnTimeline) Label() string { return ClientLabel(l.Client, l.Caller) }

// Timelines are the connections of all callers, those with most time in flight first.
func Timelines(n *facts.Node) []ConnTimeline {
	var out []ConnTimeline
	for _, caller := range Callers(n) {
		for _, c := range caller.Conns {
			out = append(out, ConnTimeline{Conn: c, Caller: caller.Name, StartNs: n.StartNs})
		}
	}
	slices.SortStableFunc(out, func(a, b ConnTimeline) int { return cmp.Compare(b.InFlightNs, a.InFlightNs) })
	return out
}

// TotalInFlightNs is the time in nanoseconds that callers waited for replies, each connection for itself; 1 at least.
func TotalInFlightNs(lanes []ConnTimeline) float64 {
	ns := int64(0)
	for _, l := range lanes {
		ns += l.InFlightNs
	}
	return float64(max(ns, 1))
}

// IdleBefore is how long the connection was idle in nanoseconds when it sent at a time. A sample is taken then, if
// there was none within a second; a connection that was open before the watch and not used during it was idle all that
// time.
func (l ConnTimeline) IdleBefore(sentNs int64) int64 {
	var before TimelineStep // the last that ended by then
	for s := range l.Steps() {
		if s.ToNs <= sentNs+int64(degree.AtOnce) {
			before = s
		}
	}
	if before.ToNs > 0 && sentNs-before.ToNs > int64(degree.Long) {
		return sentNs - before.ToNs
	}
	return before.IdleNs
}
