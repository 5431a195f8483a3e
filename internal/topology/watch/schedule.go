package watch

import (
	"slices"
	"time"
)

const (
	// nodeShare is the share of a node's CPU that pulses may take; what comes beside them is rare.
	nodeShare = 0.0015
	// Where nodes hear of moves at once, any of them will do: a pulse somewhere this often.
	calmBeat, livelyBeat = 30 * time.Millisecond, 20 * time.Millisecond
	// Where they do not, every master must be asked: each this often.
	calmRound, livelyRound = 100 * time.Millisecond, 50 * time.Millisecond
	// Whole maps, of one node after the other: nodes that join and leave, failures.
	calmSurvey, livelySurvey = time.Second, 100 * time.Millisecond
	// lively is how long it stays lively after a change. Reshardings take slot after slot.
	lively = 10 * time.Second
	// trouble bounds how long a master that cannot be reached keeps it lively: twice the default of
	// cluster-node-timeout, by which the others must have given it up.
	trouble = 30 * time.Second
	// shortest is the time between two asks, whatever the number of nodes.
	shortest = 5 * time.Millisecond
	// hangupEvery is how often the connections are looked at, by a system call of this host.
	hangupEvery = 100 * time.Millisecond
	// weighEvery is how often it is measured anew which pulse is the cheapest.
	weighEvery = time.Minute
	// late is how long after a move a node that should have heard at once may still not have.
	late = 500 * time.Millisecond
	// again is the least time between two urgent questions to one node.
	again = 200 * time.Millisecond
)

// schedule decides who is asked what, and when.
type schedule struct {
	posts     []*post // in the order of their ids
	early     bool    // the nodes hear of moves at once
	mistrust  bool    // they were seen not to
	pulse     pulse
	gap       time.Duration // between two pulses to one node, so that they stay within nodeShare
	lively    time.Time     // until then
	urgent    []*post       // to be asked for their whole map
	surveyed  time.Time
	weighed   time.Time
	lookedAt  time.Time // at the connections
	nextPulse int       // in the rotations
	nextWhole int
}

// order is what to send, to whom, and how many commands that may be.
type order struct {
	post *post
	ask  ask
	cost int
}

// greeting is what a new connection takes: a login or PING, CLIENT SETNAME, CLIENT INFO.
const greeting = 3

func newOrder(p *post, a ask, cost int) order {
	if p.conn.Load() == nil {
		cost += greeting
	}
	return order{p, a, cost}
}

// next gives what is due, if anything is and can be afforded, and how long to wait before asking again.
func (s *schedule) next(now time.Time, afford func(commands int) bool) (o order, ok bool, wait time.Duration) {
	set := s.pulseSet()
	beat := s.beat(len(set), now)
	if p := s.mostUrgent(now); p != nil {
		if o = newOrder(p, ask{survey: true}, 1); !afford(o.cost) {
			return order{}, false, shortest
		}
		s.urgent, p.hurried = slices.DeleteFunc(s.urgent, func(q *post) bool { return q == p }), now
		return o, true, shortest
	}
	if p := s.due(set, now); p != nil && now.Sub(s.weighed) >= weighEvery && afford(weighCommands) {
		s.weighed = now
		return newOrder(p, ask{weigh: true}, weighCommands), true, beat
	}
	if now.Sub(s.surveyed) >= s.surveyEvery(now) {
		p := s.rotate(s.posts, &s.nextWhole, func(p *post) bool { return !p.busy && !now.Before(p.next) })
		if p != nil && afford(newOrder(p, ask{}, 1).cost) {
			s.surveyed = now
			return newOrder(p, ask{survey: true}, 1), true, beat
		}
	}
	p := s.rotate(set, &s.nextPulse, func(p *post) bool { return s.ready(p, now) })
	if p == nil || !afford(newOrder(p, ask{}, 2).cost) {
		return order{}, false, beat
	}
	p.pulsed = now
	return newOrder(p, ask{pulse: s.pulse}, 2), true, beat
}

// weighCommands is what weigh sends: each pulse some times, and INFO around each.
const weighCommands = len(pulses) * (tries + 2)

func (s *schedule) isLively(now time.Time) bool { return now.Before(s.lively) }

// beat is the time between two pulses, wherever they go.
func (s *schedule) beat(nodes int, now time.Time) time.Duration {
	beat, round := calmBeat, calmRound
	if s.isLively(now) {
		beat, round = livelyBeat, livelyRound
	}
	if !s.hearsEarly() {
		beat = round / time.Duration(max(nodes, 1))
	}
	return max(beat, s.gap/time.Duration(max(nodes, 1)), shortest)
}

func (s *schedule) hearsEarly() bool { return s.early && !s.mistrust }

func (s *schedule) surveyEvery(now time.Time) time.Duration {
	if s.isLively(now) {
		return livelySurvey
	}
	return calmSurvey
}

// pulseSet are the nodes that are asked again and again: the replicas, which have the least to do, where they hear of
// moves at once; else the masters, of which each knows what it was given.
func (s *schedule) pulseSet() []*post {
	var replicas, primaries []*post
	for _, p := range s.posts {
		switch {
		case p.lost:
		case p.primary:
			primaries = append(primaries, p)
		default:
			replicas = append(replicas, p)
		}
	}
	if s.hearsEarly() && len(replicas) > 0 || len(primaries) == 0 {
		return replicas
	}
	return primaries
}

func (s *schedule) ready(p *post, now time.Time) bool {
	return !p.busy && !now.Before(p.next) && now.Sub(p.pulsed) >= s.gap
}

func (s *schedule) due(set []*post, now time.Time) *post {
	if i := slices.IndexFunc(set, func(p *post) bool { return s.ready(p, now) }); i >= 0 {
		return set[i]
	}
	return nil
}

// rotate gives the next post that will do, in turn.
func (s *schedule) rotate(posts []*post, at *int, ok func(*post) bool) *post {
	for range posts {
		*at++
		if p := posts[*at%len(posts)]; ok(p) {
			return p
		}
	}
	return nil
}

// hurry has a node asked for its whole map as soon as may be.
func (s *schedule) hurry(p *post) {
	if !slices.Contains(s.urgent, p) {
		s.urgent = append(s.urgent, p)
	}
}

func (s *schedule) mostUrgent(now time.Time) *post {
	for _, p := range s.urgent {
		if !p.busy && !now.Before(p.next) && now.Sub(p.hurried) >= again {
			return p
		}
	}
	return nil
}

// stir makes it lively for so long.
func (s *schedule) stir(now time.Time, d time.Duration) {
	if until := now.Add(d); until.After(s.lively) {
		s.lively = until
	}
}

func (s *schedule) remove(p *post) {
	same := func(q *post) bool { return p == q }
	s.posts, s.urgent = slices.DeleteFunc(s.posts, same), slices.DeleteFunc(s.urgent, same)
}

func (s *schedule) add(p *post) {
	i, _ := slices.BinarySearchFunc(s.posts, p.id, func(q *post, id string) int { return compare(q.id, id) })
	s.posts = slices.Insert(s.posts, i, p)
}

func (s *schedule) find(id string) *post {
	if i, ok := slices.BinarySearchFunc(s.posts, id, func(q *post, id string) int { return compare(q.id, id) }); ok {
		return s.posts[i]
	}
	return nil
}
