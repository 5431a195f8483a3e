package agent

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/format"
	"slowpath/internal/live"
	"slowpath/internal/stats"
)

// Kind is what sets an incident off.
type Kind string

// Kinds of triggers.
const (
	SlowCalls   Kind = "slow"   // so many calls are slow, or such long ones, that somebody notices
	OverGoal    Kind = "slo"    // more calls than a goal allows take longer than it says
	FailedCalls Kind = "failed" // calls fail, or the server is gone
	Asked       Kind = "asked"  // by SIGUSR1 or POST: the only one that cannot be switched off
)

// Kinds are those that can be switched off, by name.
func Kinds() []string { return []string{string(SlowCalls), string(OverGoal), string(FailedCalls)} }

// Firing is a trigger that is on now.
type Firing struct {
	Kind  Kind
	Node  string
	Since int64 // Unix second in which the calls began that are slow, or failed, more than before
	Last  int64 // Unix second in which the last of these ended
	Most  int64 // nanoseconds of the longest of these
	// Longest is the Unix second in which the longest one began.
	Longest int64
	Text    string // one sentence with the numbers that set it off
}

// Windows of the triggers, in seconds.
const (
	// usersWindow is short: what is over for so long is no reason for a new incident.
	usersWindow = 10
	// ownWindow is that of slowpath's own calls, of which there are few.
	ownWindow = 30
	// calmWindow has to be without a trigger before an incident ends.
	calmWindow = 5
	// keptSeconds are compared with: an application that lives with error replies is no incident.
	keptSeconds = 300
	// nodesKept bounds the nodes; a watch has no more.
	nodesKept = 256
)

// maxByChance is how likely it may be that so many calls exceed their share by chance. The triggers are judged each
// second, the verdict once: at its 5 % a path that is just healthy would have an incident each few minutes.
const maxByChance = 1e-3

// tally is the calls of one node in one second.
type tally struct {
	unix                int64
	calls, slow, failed int64
	maxNs               int64
	longest             int64   // Unix second in which the longest call began
	lostNs, totalNs     int64   // the time of slow calls, and of all
	over                []int64 // calls that took longer than each goal
}

// population is whose calls: those of the users of a node, or slowpath's own.
type population struct {
	node  string
	whose live.Whose
}

// triggers judge each second whether somebody notices that calls are slow or fail, as the verdict does (decision 0003).
type triggers struct {
	slow  func() time.Duration // from when on a call is slow at the moment
	goals []Goal
	off   map[Kind]bool
	seen  map[population]*[keptSeconds]tally
}

func newTriggers(slow func() time.Duration, goals []Goal, off map[Kind]bool) *triggers {
	return &triggers{slow: slow, goals: goals, off: off, seen: map[population]*[keptSeconds]tally{}}
}

// add takes the calls of complete seconds.
func (t *triggers) add(seconds []live.Second) {
	for _, s := range seconds {
		key := population{s.Node, s.Whose}
		ring := t.seen[key]
		if ring == nil {
			if len(t.seen) >= nodesKept {
				continue
			}
			ring = new([keptSeconds]tally)
			t.seen[key] = ring
		}
		ring[s.Unix%keptSeconds] = t.tallyOf(s)
	}
}

func (t *triggers) tallyOf(s live.Second) tally {
	out := tally{
		unix: s.Unix, calls: s.Calls, slow: s.Slow, failed: s.Failed, maxNs: s.Latencies.MaxNs(),
		longest: s.Unix - s.Latencies.MaxNs()/1e9, over: make([]int64, len(t.goals)),
	}
	for i, g := range t.goals {
		out.over[i] = s.Latencies.From(int64(g.Most) + 1)
	}
	slow := int64(t.slow())
	s.Latencies.Each(func(from, to, calls int64) {
		middle := (from + to) / 2
		out.totalNs += calls * middle
		if s.Slow > 0 && middle >= slow {
			out.lostNs += calls * middle
		}
	})
	return out
}

// second is one second of a population; nil: it had no calls.
func (t *triggers) second(p population, unix int64) *tally {
	if ring := t.seen[p]; ring != nil && unix >= 0 && ring[unix%keptSeconds].unix == unix {
		return &ring[unix%keptSeconds]
	}
	return nil
}

// window adds up the last n seconds before now, of one population.
func (t *triggers) window(p population, now int64, n int64) (sum tally) {
	sum.over = make([]int64, len(t.goals))
	for unix := now - n; unix < now; unix++ {
		s := t.second(p, unix)
		if s == nil {
			continue
		}
		sum.calls, sum.slow, sum.failed = sum.calls+s.calls, sum.slow+s.slow, sum.failed+s.failed
		if s.maxNs > sum.maxNs {
			sum.maxNs, sum.longest = s.maxNs, s.longest
		}
		sum.lostNs, sum.totalNs = sum.lostNs+s.lostNs, sum.totalNs+s.totalNs
		for i, over := range s.over {
			sum.over[i] += over
		}
	}
	return sum
}

// span is when what fires in the last n seconds before now began, and the second in which it ended. These are the last
// of the seconds that would fire alone, with those before them that are no further apart than calmWindow: single slow
// calls before them are as usual. Where no second would fire alone, each counts that has a call which does.
func (t *triggers) span(p population, now, n int64) (since, last int64) {
	alone := func(s *tally) bool { _, on := t.judge(p, *s, now-n, 1); return on }
	for _, counts := range []func(*tally) bool{alone, (*tally).bad} {
		for unix := now - 1; unix >= now-n; unix-- {
			switch s := t.second(p, unix); {
			case s == nil || !counts(s):
			case last == 0:
				since, last = unix, unix
			case since-unix <= calmWindow:
				since = unix
			}
		}
		if last != 0 { // it has the calls that ended then, and began earlier
			return min(since, t.second(p, since).longest), last
		}
	}
	return now, now
}

// bad reports whether a call counts against whom it was sent to.
func (s *tally) bad() bool {
	return s.slow+s.failed > 0 || slices.ContainsFunc(s.over, func(n int64) bool { return n > 0 })
}

// with is t with other goals and other triggers. What was seen of goals begins again.
func (t *triggers) with(s *Settings) *triggers {
	n := newTriggers(t.slow, s.Goals, s.Off)
	if slices.Equal(t.goals, s.Goals) {
		n.seen = t.seen
	}
	return n
}

// nodes are all that were seen, sorted.
func (t *triggers) nodes() []string {
	nodes := map[string]bool{}
	for p := range t.seen {
		nodes[p.node] = true
	}
	return slices.Sorted(maps.Keys(nodes))
}

// firing lists what is on, judged by the seconds before now; one trigger of a node at most. A short window asks
// whether it goes on.
func (t *triggers) firing(now int64, short bool) (out []Firing) {
	for _, node := range t.nodes() {
		if f, on := t.ofNode(node, now, short); on {
			out = append(out, f)
		}
	}
	return out
}

// ofNode judges a node by the calls of its users, and by slowpath's own where there are none, or where those fail.
func (t *triggers) ofNode(node string, now int64, short bool) (Firing, bool) {
	users, own := int64(usersWindow), int64(ownWindow)
	if short {
		users, own = calmWindow, usersWindow
	}
	ofUsers, ofOwn := population{node, live.Users}, population{node, live.Own}
	usersSum, ownSum := t.window(ofUsers, now, users), t.window(ofOwn, now, own)
	if usersSum.calls > 0 {
		if f, on := t.judge(ofUsers, usersSum, now-users, users); on {
			f.Since, f.Last = t.span(ofUsers, now, users)
			return f, true
		}
		ownSum.slow, ownSum.maxNs, ownSum.lostNs, ownSum.over = 0, 0, 0, make([]int64, len(t.goals))
	}
	f, on := t.judge(ofOwn, ownSum, now-own, own)
	if on {
		f.Since, f.Last = t.span(ofOwn, now, own)
	}
	return f, on
}

// judge decides about the calls of a population in so many seconds, by what was usual until a second before them. None
// of slowpath's own should fail.
func (t *triggers) judge(p population, s tally, usualUntil, seconds int64) (Firing, bool) {
	node, own := p.node, p.whose == live.Own
	f := Firing{Node: node, Most: s.maxNs, Longest: s.longest}
	whose := "its clients"
	if own {
		whose = "slowpath itself"
	}
	say := func(k Kind, format string, args ...any) (Firing, bool) {
		f.Kind, f.Text = k, node+": "+fmt.Sprintf(format, args...)
		return f, true
	}
	share := func(n int64) string {
		return fmt.Sprintf("%s of %s calls of %s in %d s", format.Thousands(n), format.Thousands(s.calls), whose,
			seconds)
	}
	failing := s.failed >= account.MinSlowCalls &&
		(own || isPattern(s.failed, s.calls, max(facts.HealthyMaxShare, t.failedBefore(node, usualUntil))))
	switch {
	case !t.off[FailedCalls] && failing:
		return say(FailedCalls, "%s calls of %s failed in %d s (%s were answered)", format.Thousands(s.failed), whose,
			seconds, format.Thousands(s.calls))
	case !t.off[SlowCalls] && t.noticed(s, seconds):
		return say(SlowCalls, "%s took %s or longer, the longest %s", share(s.slow), format.Duration(t.slow()),
			format.Duration(s.maxNs))
	case t.off[OverGoal]:
		return f, false
	}
	for i, g := range t.goals {
		if isPattern(s.over[i], s.calls, 1-g.Quantile) {
			return say(OverGoal, "%s took longer than %s, the goal of %s", share(s.over[i]), format.Duration(g.Most),
				g.Name())
		}
	}
	return f, false
}

// failedBefore is the part of the calls of users that failed before a second.
func (t *triggers) failedBefore(node string, second int64) float64 {
	const margin = 5 // seconds: what begins slowly is not what was usual
	sum := t.window(population{node, live.Users}, second-margin, keptSeconds-usersWindow-margin)
	if sum.calls < leastCalls {
		return 0
	}
	return float64(sum.failed) / float64(sum.calls)
}

// leastCalls before a time say what was usual.
const leastCalls = 100

// noticed is what the verdict calls noticed: a pattern of slow calls, one of them is long, or together they take a
// notable part of the time: of that of the clock, and of what all callers spend in calls. A stall of 10 ms that 50
// callers wait for at once takes half a second of theirs, and none of them loses more than 10 ms.
func (t *triggers) noticed(s tally, seconds int64) bool {
	if s.slow == 0 {
		return false
	}
	return isPattern(s.slow, s.calls, facts.HealthyMaxShare) || s.maxNs >= facts.HealthyMaxNs ||
		s.slow >= account.MinSlowCalls &&
			float64(s.lostNs) >= facts.MinShare*max(float64(seconds)*1e9, float64(s.totalNs))
}

// isPattern reports whether more of the calls are concerned than may be, beyond chance.
func isPattern(concerned, calls int64, share float64) bool {
	return concerned >= account.MinSlowCalls &&
		stats.PoissonTail(int(concerned), share*float64(max(calls, concerned))) <= maxByChance
}

// bad counts the slow and failed calls from a second on: of the users of a node, where it has any.
func (t *triggers) bad(node string, from, now int64) (slow, failed int64) {
	for _, whose := range []live.Whose{live.Users, live.Own} {
		sum := t.window(population{node, whose}, now, min(now-from, keptSeconds-1))
		slow, failed = sum.slow, sum.failed
		if sum.calls > 0 {
			break
		}
	}
	return slow, failed
}
