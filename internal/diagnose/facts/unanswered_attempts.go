package facts

import (
	"slices"
	"sort"

	"github.com/HdrHistogram/hdrhistogram-go"

	"slowpath/internal/recording"
)

// Unanswered are the connections on which a call waited for a reply that would never have come, until its caller gave
// up: the server answered others meanwhile, and hardly any call is answered shortly before the timeout. Where the
// server is merely late, the wait of one that was given up is also that of others, and as many calls come just in time
// as come too late: no cut through a distribution leaves nothing on its one side.
func (n *Node) NeverAnswered(callers []*Caller) map[*Conn]bool {
	given, age := closedWaiting(callers)
	if len(given) < MinRedials {
		return nil
	}
	if late, seen := n.AnsweredBeforeTimeout(age); !seen || late > maxAnsweredLateShare*float64(len(given)) {
		return nil
	}
	others := n.answers(callers)
	out := map[*Conn]bool{}
	for _, k := range given {
		if others.during(k, k.CloseNs-k.IdleNs, k.CloseNs) {
			out[k] = true
		}
	}
	if float64(len(out)) < minProvenShare*float64(len(given)) {
		return nil // most of them waited for a server that answered nobody
	}
	for _, k := range given {
		out[k] = true // the same timeout, the same path: for some nobody else called
	}
	return out
}

const (
	// justInTimeShare of those given up may have been answered between half of the timeout and the timeout. Calls that
	// meet a server which stands still for as long as S at a random moment wait evenly between 0 and S: with a timeout
	// T, (T/2) / (S-T) of those given up are answered in that stretch, which is more than this for every S below 3 T.
	maxAnsweredLateShare = 0.25
	minProvenShare       = 0.5
)

// givenUp are the connections that were closed with a call waiting, where its command is not one that waits by itself,
// and the median wait.
func closedWaiting(callers []*Caller) (list []*Conn, ageNs int64) {
	for _, c := range callers {
		for _, k := range c.ConnsWhere((*Conn).ClosedWaiting) {
			if !LongWaitCommands[k.UnansweredOp] {
				list = append(list, k)
			}
		}
	}
	return list, PercentilesOf(list, func(k *Conn) int64 { return k.IdleNs }).Median
}

// MeantToWait are commands whose reply may be long in coming on a server that is well.
var LongWaitCommands = WordSet("BLPOP BRPOP BLMOVE BRPOPLPUSH BLMPOP BZPOPMIN BZPOPMAX BZMPOP XREAD XREADGROUP WAIT " +
	"WAITAOF " +
	"SUBSCRIBE PSUBSCRIBE SSUBSCRIBE MONITOR")

// JustInTime is how many calls were answered between half of a timeout and the timeout; seen is false where no calls
// were counted.
func (n *Node) AnsweredBeforeTimeout(timeoutNs int64) (calls float64, seen bool) {
	var count, all int64
	for _, side := range []string{recording.Client, recording.Server} {
		for _, h := range n.Rec.Histograms {
			if h.Source != recording.SourceTap || h.Node != n.Address || len(h.Op) <= len(side) ||
				h.Op[:len(side)+1] != side+" " || LongWaitCommands[h.Op[len(side)+1:]] {
				continue
			}
			hist, err := hdrhistogram.Decode(h.HDR)
			if err != nil {
				continue // a damaged row is as good as none
			}
			all += hist.TotalCount()
			for _, b := range hist.Distribution() {
				if b.From >= timeoutNs/2 && b.From < timeoutNs {
					count += b.Count
				}
			}
		}
		if all > 0 {
			break // the other end has the same calls
		}
	}
	return float64(count), all > 0
}

// answers are signs that the server answered somebody.
type answers struct {
	requests []request  // of single calls, from the request to the reply, by their begin
	steps    []connStep // of connections from one look to the next
}

type request struct {
	conn     string
	from, to int64
}

type connStep struct {
	conn *Conn
	TimelineStep
}

func (n *Node) answers(callers []*Caller) (a answers) {
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
			for _, s := range stepsOf(k, n.StartNs) {
				a.steps = append(a.steps, connStep{k, s})
			}
		}
	}
	sort.Slice(a.requests, func(i, j int) bool { return a.requests[i].from < a.requests[j].from })
	return a
}

// during reports whether others than a connection were answered what they asked between two times.
func (a answers) during(not *Conn, from, to int64) bool {
	at, _ := slices.BinarySearchFunc(a.requests, from, func(s request, t int64) int {
		if s.from < t {
			return -1
		}
		return 1
	})
	for _, s := range a.requests[at:] {
		if s.from >= to {
			break
		}
		if s.conn != not.Client && s.to < to {
			return true
		}
	}
	return a.flowed(not, from, to)
}

// flowed reports whether the calls on other connections cannot have stood still between two times: with the calls that
// came at their rate in that time, each of them waiting for its end, they would have been in flight for longer than
// they were in the whole looks around it.
func (a answers) flowed(not *Conn, from, to int64) bool {
	t := float64(to - from)
	var perNs, inFlight float64
	for _, l := range a.steps {
		if l.conn == not || l.FromNs > from || l.ToNs < to {
			continue
		}
		perNs += float64(l.Calls) / float64(l.ToNs-l.FromNs)
		inFlight += float64(l.InFlightNs)
	}
	return perNs*t >= minExpectedCalls && inFlight < perNs*t*t/2/2
}

// flowedCalls should have come meanwhile: that none of so many did by chance has a probability below 1 % (Poisson).
const minExpectedCalls = 5

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
