package simulate

import (
	"math"
	"time"
)

// nobody has a slot in the gap of a move.
const nobody = -1

// change gives a group of slots to a node. Groups are single slots that move, or all slots of a master that fails.
type change struct {
	at       float64 // seconds, as all times here
	openFrom float64 // before at calls to moved keys get ASK from then on
	group    int
	from, to int // nodes; to may be nobody
	before   int // version of the group before it
}

// world is the cluster: what happens in it does not depend on its clients.
type world struct {
	*Setup
	changes  []change
	groups   int
	origin   []int // the first owner of each group
	nodes    []node
	failed   int // the node that fails; nobody if none does
	downFrom float64
	downTo   float64
	silent   bool // while down it keeps its connections, and answers nothing
	newNode  int  // nobody if none joins
	spread   float64
	hash     uint64
}

// node is a server.
type node struct {
	master bool
	free   float64   // until then it is busy with commands that came earlier
	calls  perSecond // commands by the second of their arrival
	busy   []float64 // seconds of the main thread by second
}

func newWorld(s *Setup) *world {
	w := &world{
		Setup: s, failed: nobody, newNode: nobody, spread: s.Spread.Seconds(), hash: mix(s.Seed), downTo: math.Inf(1),
	}
	seconds := int(math.Ceil(s.Duration.Seconds()))
	total := s.Masters * (1 + s.Replicas)
	if s.Change.Kind == Slots && s.Change.NewNode {
		w.newNode = total
		total++
	}
	for i := range total {
		w.nodes = append(w.nodes, node{
			master: i < s.Masters || i == w.newNode, calls: make(perSecond, seconds), busy: make([]float64, seconds),
		})
	}
	switch s.Change.Kind {
	case Slots:
		w.moveSlots()
	case Failover, Hang, Rejoin:
		w.failMaster()
	}
	version := make([]int, w.groups)
	for k := range w.changes {
		c := &w.changes[k]
		c.before, version[c.group] = version[c.group], k+1
	}
	return w
}

// moveSlots takes slots of all masters in turn and gives them to one.
func (w *world) moveSlots() {
	c := &w.Change
	to := w.Masters - 1
	if w.newNode != nobody {
		to = w.newNode
	}
	w.groups = c.Slots
	// With a gap the change to nobody comes first; changes are in the order of their times.
	for i := range c.Slots {
		at := c.At.Seconds() + float64(i)/c.PerSecond + c.Open.Seconds()
		from := i % (w.Masters - 1)
		w.origin = append(w.origin, from)
		w.changes = append(w.changes, change{at: at, openFrom: at - c.Open.Seconds(), group: i, from: from, to: to})
	}
	if c.Gap > 0 {
		w.addGaps(c.Gap.Seconds())
	}
}

// addGaps has each slot belong to nobody before the receiver has it.
func (w *world) addGaps(gap float64) {
	moves := w.changes
	w.changes = nil
	for lost, taken := 0, 0; taken < len(moves); {
		if lost < len(moves) && moves[lost].at <= moves[taken].at+gap {
			c := moves[lost]
			c.to = nobody
			w.changes = append(w.changes, c)
			lost++
			continue
		}
		c := moves[taken]
		c.at, c.openFrom = c.at+gap, c.at+gap
		w.changes = append(w.changes, c)
		taken++
	}
}

// failMaster has the first replica of the first master take over.
func (w *world) failMaster() {
	c := &w.Change
	w.failed, w.downFrom = 0, c.At.Seconds()
	w.silent = c.Kind == Hang
	if c.Kind == Rejoin {
		w.downTo = (c.At + c.Back).Seconds()
	}
	w.groups, w.origin = 1, []int{0}
	at := (c.At + c.Promotion).Seconds()
	w.changes = []change{{at: at, openFrom: at, group: 0, from: 0, to: w.Masters}}
}

// owner of a group after its version-th change: 0 is the origin, k+1 is changes[k].
func (w *world) owner(group, version int) int {
	if version == 0 {
		return w.origin[group]
	}
	return w.changes[version-1].to
}

// down reports whether a node does not answer.
func (w *world) down(n int, t float64) bool { return n == w.failed && t >= w.downFrom && t < w.downTo }

// mostSpread is how many times later than in the mean a node may hear of a change.
const mostSpread = 5

// knows reports whether a node has heard of a change. Those that give and take a slot know at once, all others after a
// time with an exponential distribution; of a promotion all hear at once, in all versions.
func (w *world) knows(n, k int, t float64) bool {
	c := &w.changes[k]
	if t < c.at {
		return false
	}
	if w.failed != nobody || n == c.from || n == c.to || t >= c.at+mostSpread*w.spread {
		return true
	}
	u := float64(mix(w.hash^uint64(n)<<32^uint64(k))>>11) / (1 << 53)
	return t-c.at >= w.spread*min(mostSpread, -math.Log(1-u))
}

// serve has a node do a command, after those that came earlier. It returns when the main thread begins and ends.
func (w *world) serve(n int, t float64, d time.Duration) (begin, end float64) {
	x := &w.nodes[n]
	begin = max(t, x.free)
	end = begin + d.Seconds()
	x.free = end
	x.calls.add(t)
	for from := begin; from < end; {
		i := int(from)
		to := min(end, float64(i+1))
		if i >= len(x.busy) {
			break
		}
		x.busy[i] += to - from
		from = to
	}
	return begin, end
}

// mix is SplitMix64: a random number that is a function of another.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
