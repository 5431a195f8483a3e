package watch

import (
	"slices"
	"strings"
	"time"
)

const (
	// nodeShare is the share of a node's CPU that polls may take; all other requests are rare.
	nodeShare = 0.0015
	// Where nodes broadcast moves, polling any node is enough: this often in all.
	idlePoll, activePoll = 30 * time.Millisecond, 20 * time.Millisecond
	// Where they do not, every master must be polled: each this often.
	idleRound, activeRound = 100 * time.Millisecond, 50 * time.Millisecond
	// The whole map, of one node after the other: for joins, leaves and failures.
	idleFullMap, activeFullMap = time.Second, 100 * time.Millisecond
	// activeFor is how long polls stay frequent after a change, since resharding moves slot after slot.
	activeFor = 10 * time.Second
	// activeForLoss is how long an unreachable master keeps polls frequent: twice the default of cluster-node-timeout,
	// after which the others must have marked it as failed.
	activeForLoss = 30 * time.Second
	// minWait is the least time between two requests, whatever the number of nodes.
	minWait = 5 * time.Millisecond
	// connCheckEvery is how often the connections are checked, by a system call on this host.
	connCheckEvery = 100 * time.Millisecond
	// measureEvery is how often the cheapest poll command is determined again.
	measureEvery = time.Minute
	// maxBroadcastDelay is how long after a move a node may still not know of it, though moves are broadcast.
	maxBroadcastDelay = 500 * time.Millisecond
	// minUrgentGap is the least time between two urgent requests to one node.
	minUrgentGap = 200 * time.Millisecond
)

// schedule decides which node gets which request, and when.
type schedule struct {
	pollers       []*poller // in the order of their ids
	broadcast     bool      // all nodes broadcast moves
	broadcastLate bool      // a broadcast was seen to be late or missing
	command       pollCommand
	gap           time.Duration // between two polls of one node, so that they stay within nodeShare
	activeUntil   time.Time
	urgent        []*poller // nodes whose whole map is needed now
	fullMapAt     time.Time
	measuredAt    time.Time
	connCheckedAt time.Time
	nextPoll      int // index of the rotation
	nextFullMap   int
}

// task is a request to a node, and how many commands it may take.
type task struct {
	poller  *poller
	request request
	cost    int
}

// connectCommands is what a new connection takes: a login or PING, CLIENT SETNAME, CLIENT INFO.
const connectCommands = 3

func newTask(p *poller, a request, cost int) task {
	if p.conn.Load() == nil {
		cost += connectCommands
	}
	return task{p, a, cost}
}

// next gives the task that is due, if there is one and the rate limit allows it, and how long to wait before the next
// call of next.
func (s *schedule) next(now time.Time, afford func(commands int) bool) (t task, ok bool, wait time.Duration) {
	set := s.pollSet()
	interval := s.pollEvery(len(set), now)
	if p := s.nextUrgent(now); p != nil {
		if t = newTask(p, request{fullMap: true}, 1); !afford(t.cost) {
			return task{}, false, minWait
		}
		s.urgent, p.urgentAt = slices.DeleteFunc(s.urgent, func(q *poller) bool { return q == p }), now
		return t, true, minWait
	}
	if p := s.firstReady(set, now); p != nil && now.Sub(s.measuredAt) >= measureEvery && afford(measureCommands) {
		s.measuredAt = now
		return newTask(p, request{measure: true}, measureCommands), true, interval
	}
	if now.Sub(s.fullMapAt) >= s.fullMapEvery(now) {
		p := s.rotate(s.pollers, &s.nextFullMap, func(p *poller) bool { return !p.busy && !now.Before(p.next) })
		if p != nil && afford(newTask(p, request{}, 1).cost) {
			s.fullMapAt = now
			return newTask(p, request{fullMap: true}, 1), true, interval
		}
	}
	p := s.rotate(set, &s.nextPoll, func(p *poller) bool { return s.ready(p, now) })
	if p == nil || !afford(newTask(p, request{}, 2).cost) {
		return task{}, false, interval
	}
	p.polledAt = now
	return newTask(p, request{command: s.command}, 2), true, interval
}

// measureCommands is what measureCosts sends: each command several times, and INFO before and after.
const measureCommands = len(pollCommands) * (callsPerCommand + 2)

func (s *schedule) isActive(now time.Time) bool { return now.Before(s.activeUntil) }

// pollEvery is the time between two polls, of whichever node.
func (s *schedule) pollEvery(nodes int, now time.Time) time.Duration {
	interval, round := idlePoll, idleRound
	if s.isActive(now) {
		interval, round = activePoll, activeRound
	}
	if !s.anyNodeWillDo() {
		interval = round / time.Duration(max(nodes, 1))
	}
	return max(interval, s.gap/time.Duration(max(nodes, 1)), minWait)
}

func (s *schedule) anyNodeWillDo() bool { return s.broadcast && !s.broadcastLate }

func (s *schedule) fullMapEvery(now time.Time) time.Duration {
	if s.isActive(now) {
		return activeFullMap
	}
	return idleFullMap
}

// pollSet lists the nodes to poll: the replicas, which have the least to do, where moves are broadcast; else the
// masters, since each knows the slots that it received.
func (s *schedule) pollSet() []*poller {
	var replicas, primaries []*poller
	for _, p := range s.pollers {
		switch {
		case p.unreachable:
		case p.primary:
			primaries = append(primaries, p)
		default:
			replicas = append(replicas, p)
		}
	}
	if s.anyNodeWillDo() && len(replicas) > 0 || len(primaries) == 0 {
		return replicas
	}
	return primaries
}

func (s *schedule) ready(p *poller, now time.Time) bool {
	return !p.busy && !now.Before(p.next) && now.Sub(p.polledAt) >= s.gap
}

func (s *schedule) firstReady(set []*poller, now time.Time) *poller {
	if i := slices.IndexFunc(set, func(p *poller) bool { return s.ready(p, now) }); i >= 0 {
		return set[i]
	}
	return nil
}

// rotate gives the next poller, in turn, for which ok holds.
func (s *schedule) rotate(posts []*poller, at *int, ok func(*poller) bool) *poller {
	for range posts {
		*at++
		if p := posts[*at%len(posts)]; ok(p) {
			return p
		}
	}
	return nil
}

// addUrgent requests the whole map of a node as soon as possible.
func (s *schedule) addUrgent(p *poller) {
	if !slices.Contains(s.urgent, p) {
		s.urgent = append(s.urgent, p)
	}
}

func (s *schedule) nextUrgent(now time.Time) *poller {
	for _, p := range s.urgent {
		if !p.busy && !now.Before(p.next) && now.Sub(p.urgentAt) >= minUrgentGap {
			return p
		}
	}
	return nil
}

// stayActive keeps polls frequent for so long.
func (s *schedule) stayActive(now time.Time, d time.Duration) {
	if until := now.Add(d); until.After(s.activeUntil) {
		s.activeUntil = until
	}
}

func (s *schedule) remove(p *poller) {
	same := func(q *poller) bool { return p == q }
	s.pollers, s.urgent = slices.DeleteFunc(s.pollers, same), slices.DeleteFunc(s.urgent, same)
}

func (s *schedule) add(p *poller) {
	i, _ := slices.BinarySearchFunc(s.pollers, p.id, func(q *poller, id string) int {
		return strings.Compare(q.id,
			id)
	})
	s.pollers = slices.Insert(s.pollers, i, p)
}

func (s *schedule) find(id string) *poller {
	if i, ok := slices.BinarySearchFunc(s.pollers, id, func(q *poller, id string) int {
		return strings.Compare(q.id,
			id)
	}); ok {
		return s.pollers[i]
	}
	return nil
}
