package connection

import (
	"iter"
	"sort"
	"sync"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
)

// answers are signs that the server answered somebody.
type answers struct {
	requests []request // of single calls, from the request to the reply, by their begin
	callers  []*caller.Caller
	startNs  int64 // of the watch
	steps    func() connSteps
}

// request is a call from its send to its reply.
type request struct {
	conn     string
	from, to int64
}

// connStep is the use of a connection from one sample to the next.
type connStep struct {
	conn *caller.Conn
	caller.TimelineStep
}

// answersIn collects the calls of the node's connections.
func answersIn(n *facts.Node, callers []*caller.Caller) *answers {
	a := &answers{callers: callers, startNs: n.StartNs}
	a.steps = sync.OnceValue(a.findSteps)
	for _, c := range n.Rec.Calls {
		if c.Node == n.Address && c.Error == "" {
			a.requests = append(a.requests, request{c.Conn, c.StartNs, c.EndNs})
		}
	}
	for _, c := range callers {
		for _, k := range c.Conns {
			if k.Handshake != nil { // its first round trips
				a.requests = append(a.requests, request{k.Client, k.OpenNs, k.OpenNs + k.FirstReplyNs - k.DialNs})
			}
		}
	}
	sort.Slice(a.requests, func(i, j int) bool { return a.requests[i].from < a.requests[j].from })
	return a
}

// connSteps are the steps by bucketOf each time that they touch, so that those at a time are found without going through
// all of them: callers that give up are asked one by one.
type connSteps map[int64][]*connStep

// bucketOf is the bucket of a time, each some steps long: 2^32 ns are 4.3 s.
func bucketOf(ns int64) int64 { return ns >> 32 }

// findSteps are those of the connections from one sample to the next. They are many, and rarely needed.
func (a *answers) findSteps() connSteps {
	s := connSteps{}
	for _, c := range a.callers {
		for _, k := range c.Conns {
			for step := range caller.StepsOf(k, a.startNs) {
				s.add(&connStep{k, step})
			}
		}
	}
	return s
}

func (s connSteps) add(step *connStep) {
	for b := bucketOf(step.FromNs); b <= bucketOf(step.ToNs); b++ {
		s[b] = append(s[b], step)
	}
}

// around yields the steps from before a time to after another, in their order.
func (s connSteps) around(from, to int64) iter.Seq[*connStep] {
	return func(yield func(*connStep) bool) {
		for _, l := range s[bucketOf(from)] {
			if l.FromNs <= from && l.ToNs >= to && !yield(l) {
				return
			}
		}
	}
}

// during reports whether calls on other connections were answered between two times.
func (a *answers) during(not *caller.Conn, from, to int64) bool {
	at := sort.Search(len(a.requests), func(i int) bool { return a.requests[i].from >= from })
	for _, s := range a.requests[at:] {
		if s.from < to && s.to < to && s.conn != not.Client {
			return true
		}
		if s.from >= to {
			break
		}
	}
	return a.flowed(not, from, to)
}

// flowed reports whether calls on other connections cannot have stood still between two times: if those that came at
// their rate in that time had each waited for its end, they would have been in flight for longer than they were in the
// whole steps around it.
func (a *answers) flowed(not *caller.Conn, from, to int64) bool {
	t := float64(to - from)
	var perNs, inFlight float64
	for l := range a.steps().around(from, to) {
		if l.conn != not {
			perNs += float64(l.Calls) / float64(l.ToNs-l.FromNs)
			inFlight += float64(l.InFlightNs)
		}
	}
	return perNs*t >= degree.Many && inFlight < perNs*t*t/2/2
}
