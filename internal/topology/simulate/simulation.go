package simulate

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// ErrSetup is matched by the error for a setup that would take minutes, or a policy that the server cannot serve.
var ErrSetup = errors.New("cannot be simulated")

// mostSteps bounds the work for one policy: a step is an event or an answer of a node.
const mostSteps = 50_000_000

// Run simulates one policy. The same setup gives the same result. It stops when the context ends.
func Run(ctx context.Context, s Setup, p Policy) (Result, error) {
	if _, ok := s.Costs[p.Command]; !ok {
		return Result{}, fmt.Errorf("%s %w: what %s costs on %s is not known; add command=slots to it", p.Name,
			ErrSetup, p.Command, s.Server)
	}
	r := newRun(&s, p)
	for r.queue.Len() > 0 {
		e := heap.Pop(&r.queue).(event)
		if e.at >= s.Duration.Seconds() {
			break
		}
		if r.steps++; r.steps%1024 == 0 && ctx.Err() != nil {
			return Result{}, ctx.Err()
		}
		if r.steps > mostSteps {
			return Result{}, fmt.Errorf("%s %w: more than %d events; give less of --clients, --calls or --for",
				p.Name, ErrSetup, mostSteps)
		}
		r.do(e)
	}
	return r.result(), nil
}

// kind of an event.
type kind int

const (
	changed  kind = iota // a change of the cluster is done
	beat                 // the period of a client is over
	call                 // a client calls a slot that changes at some time
	answered             // a refresh ends
	cooled               // the guard period is over, with a trigger to make up for
	attempt              // a client tries to reach the failed node again
	pushed               // all clients receive a change
)

// event is what happens at a time. Which numbers matter depends on its kind.
type event struct {
	at     float64
	order  int // of events at the same time, so that runs are equal
	kind   kind
	client int
	index  int     // a change; the node whose answer was chosen, or nobody; the number of an attempt
	asOf   float64 // when that node answered
}

type queue []event

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].order < q[j].order
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(e any)   { *q = append(*q, e.(event)) }
func (q *queue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	*q = (*q)[:last]
	return e
}

// client has a map, and refreshes it.
type client struct {
	refreshing, pending bool
	startedAt           float64
	guardUntil          float64
	generation          int      // of its period
	moved               int      // since the last refresh that MOVED triggered
	version             []uint16 // of each group
	learned             []bool   // of each change
	unknown             int      // changes it has not learned
	base                int      // changes before it are known to all nodes and to it
	knowsNew            bool     // the node that has joined
	attempts            int      // to reach the failed node; 0: it has not noticed
	seesBack            bool     // it knows that the failed node is back
}

// run is the simulation of one policy.
type run struct {
	*world
	Policy
	rng     *rand.Rand
	clients []client
	current []int // version of each group
	queue   queue
	events  int // that were queued
	steps   int
	times   []float64 // from a change to a client, by client and change; below 0: not known

	moved, asks, failures, refreshes perSecond
	loading                          float64
	early, backward                  int
	slowest, lastMoved               float64
}

func newRun(s *Setup, p Policy) *run {
	w := newWorld(s)
	seconds := int(math.Ceil(s.Duration.Seconds()))
	r := &run{
		world: w, Policy: p, rng: rand.New(rand.NewPCG(s.Seed, 16)), clients: make([]client, s.Clients),
		current: make([]int, w.groups), times: make([]float64, s.Clients*len(w.changes)),
		moved: make(perSecond, seconds), asks: make(perSecond, seconds), failures: make(perSecond, seconds),
		refreshes: make(perSecond, seconds), lastMoved: -1,
	}
	for i := range r.times {
		r.times[i] = -1
	}
	for i := range r.clients {
		c := &r.clients[i]
		c.version, c.learned, c.unknown = make([]uint16, w.groups), make([]bool, len(w.changes)), len(w.changes)
		if p.Period > 0 {
			r.put(event{at: r.rng.Float64() * p.Period.Seconds(), kind: beat, client: i})
		}
		if len(w.changes) > 0 {
			r.nextCall(i, min(w.changes[0].openFrom, s.Change.At.Seconds()))
		}
	}
	for k, c := range w.changes {
		r.put(event{at: c.at, kind: changed, index: k})
		if p.Push > 0 && c.to != nobody {
			r.put(event{at: c.at + p.Push.Seconds(), kind: pushed, index: k})
		}
	}
	return r
}

func (r *run) put(e event) {
	e.order = r.events
	r.events++
	heap.Push(&r.queue, e)
}

func (r *run) do(e event) {
	switch e.kind {
	case changed:
		r.current[r.changes[e.index].group] = e.index + 1
	case beat:
		r.beat(e)
	case call:
		r.call(e.client, e.at)
	case answered:
		r.answered(e)
	case cooled:
		if c := &r.clients[e.client]; c.pending && !c.refreshing && e.at >= c.guardUntil {
			r.refresh(e.client, e.at, nobody)
		}
	case attempt:
		r.attempt(e)
	case pushed:
		for i := range r.clients {
			r.patch(i, e.index+1, e.at)
		}
	}
}

// nextCall is the next one to a slot that changes: calls are a Poisson process.
func (r *run) nextCall(i int, t float64) {
	r.put(event{at: t + r.rng.ExpFloat64()/(r.Calls*r.share()), kind: call, client: i})
}

func (r *run) beat(e event) {
	c := &r.clients[e.client]
	if e.index != c.generation {
		return // a refresh came meanwhile
	}
	if c.refreshing {
		r.nextBeat(e.client, e.at)
		return
	}
	r.refresh(e.client, e.at, nobody)
}

func (r *run) nextBeat(i int, t float64) {
	if r.Period > 0 {
		c := &r.clients[i]
		c.generation++
		r.put(event{at: t + r.Period.Seconds(), kind: beat, client: i, index: c.generation})
	}
}

// call goes to the node that the client's map names.
func (r *run) call(i int, t float64) {
	c := &r.clients[i]
	settled := r.changes[len(r.changes)-1].at + mostSpread*r.spread
	if c.unknown > 0 || t < settled {
		r.nextCall(i, t)
	}
	g := r.rng.IntN(r.groups)
	to := r.owner(g, int(c.version[g]))
	switch {
	case to == nobody:
		r.failures.add(t)
		r.trigger(i, t, OnUncovered, nobody)
	case r.down(to, t):
		r.failures.add(t)
		r.notReached(i, t)
	default:
		r.reached(i, t, g, to)
	}
}

// reached: a node that has given a slot away answers MOVED, and ASK while it gives it.
func (r *run) reached(i int, t float64, g, n int) {
	c := &r.clients[i]
	owner := r.owner(g, r.current[g])
	switch {
	case owner == nobody:
		r.failures.add(t)
	case owner != n:
		r.moved.add(t)
		r.lastMoved = t
		if r.Patch {
			r.patch(i, r.current[g], t)
		}
		if owner == r.newNode && !c.knowsNew {
			r.trigger(i, t, OnUnknown, n)
		}
		if c.moved++; c.moved >= r.Every {
			r.trigger(i, t, OnMoved, n)
		}
	case r.isAsked(g, t):
		r.asks.add(t)
		r.trigger(i, t, OnAsk, n)
	}
}

// isAsked reports whether the key of a call has gone to the receiver of its open slot: its keys go evenly.
func (r *run) isAsked(g int, t float64) bool {
	if r.Change.Open == 0 || r.Change.Kind != Slots || r.current[g] != 0 {
		return false
	}
	opened := r.Change.At.Seconds() + float64(g)/r.Change.PerSecond
	return r.rng.Float64() < (t-opened)/r.Change.Open.Seconds()
}

// notReached begins attempts to connect again: at once where the process has ended, and when a call has timed out
// where it is silent.
func (r *run) notReached(i int, t float64) {
	c := &r.clients[i]
	if c.attempts > 0 || r.Attempts == 0 {
		return
	}
	c.attempts = 1
	pause := r.Pause.Seconds()
	if r.silent {
		if r.CallTimeout == 0 {
			return
		}
		pause = r.CallTimeout.Seconds()
	}
	r.put(event{at: t + pause*(0.5+r.rng.Float64()), kind: attempt, client: i, index: 1})
}

func (r *run) attempt(e event) {
	c := &r.clients[e.client]
	to := r.owner(0, int(c.version[0]))
	if !r.down(to, e.at) {
		c.attempts = 0
		return
	}
	if e.index >= r.Attempts {
		r.trigger(e.client, e.at, OnReconnect, nobody)
	}
	pause := math.Min(r.Pause.Seconds()*math.Pow(2, float64(min(e.index, 40))), r.PauseMost.Seconds())
	if r.silent {
		pause = max(pause, r.CallTimeout.Seconds())
	}
	r.put(event{at: e.at + pause*(0.5+r.rng.Float64()), kind: attempt, client: e.client, index: e.index + 1})
}

// trigger starts a refresh if the policy has one for this event and its guard period is over.
func (r *run) trigger(i int, t float64, on Trigger, from int) {
	if !r.has(on) {
		return
	}
	c := &r.clients[i]
	if c.refreshing || t < c.guardUntil {
		c.pending = r.Deferred
		return
	}
	if on == OnMoved {
		c.moved = 0
	}
	if !r.Deferred {
		c.guardUntil = t + r.Guard.Seconds()
	}
	r.refresh(i, t, from)
}

// patch gives a client one change.
func (r *run) patch(i, version int, t float64) {
	if version == 0 {
		return
	}
	c := &r.clients[i]
	if g := r.changes[version-1].group; int(c.version[g]) < version {
		c.version[g] = uint16(version)
	}
	r.learn(i, version-1, t)
}

// learn notes that a client knows a change.
func (r *run) learn(i, k int, t float64) {
	c := &r.clients[i]
	if !c.learned[k] {
		c.learned[k] = true
		c.unknown--
		r.times[i*len(r.changes)+k] = t - r.changes[k].at
	}
	if r.changes[k].to == r.newNode {
		c.knowsNew = true
	}
}

func (r *run) forget(i, k int) {
	if c := &r.clients[i]; c.learned[k] {
		c.learned[k] = false
		c.unknown++
		r.times[i*len(r.changes)+k] = -1
		r.backward++
	}
}

// view is what a node answered.
type view struct {
	node int
	asOf float64
	at   float64 // when the client has it
}

// refresh asks nodes, and ends when all of them have answered or not.
func (r *run) refresh(i int, t float64, from int) {
	c := &r.clients[i]
	c.refreshing, c.pending, c.startedAt = true, false, t
	r.refreshes.add(t)
	var views []view
	end := t
	if r.Ask == AskOne || r.Ask == AskRedirector {
		views, end = r.askOne(t, from)
	} else {
		for _, n := range r.sources() {
			v, at := r.askNode(n, t)
			end = max(end, at)
			if v.node != nobody {
				views = append(views, v)
			}
		}
	}
	e := event{at: end, kind: answered, client: i, index: nobody}
	if len(views) > 0 {
		v := r.choose(c, views)
		e.index, e.asOf = v.node, v.asOf
	}
	r.put(e)
}

// sources are the nodes that a refresh asks.
func (r *run) sources() []int {
	const seeds = 3
	var out []int
	for n := range r.nodes {
		if r.Ask == AskAll || r.Ask == AskSeeds && n < seeds || r.Ask == AskMasters && r.nodes[n].master ||
			r.Ask == AskReplicas && (!r.nodes[n].master || r.Replicas == 0) {
			out = append(out, n)
		}
	}
	return out
}

// askOne asks one node after the other until one answers.
func (r *run) askOne(t float64, first int) ([]view, float64) {
	n := first
	if r.Ask == AskOne || first == nobody {
		n = r.rng.IntN(len(r.nodes))
	}
	for range 10 {
		v, at := r.askNode(n, t)
		if v.node != nobody {
			return []view{v}, at
		}
		n, t = r.rng.IntN(len(r.nodes)), at
	}
	return nil, t
}

// askNode asks a node. One that has ended refuses at once, a silent one lets the client wait.
func (r *run) askNode(n int, t float64) (view, float64) {
	r.steps++
	if r.down(n, t) {
		if r.silent {
			return view{node: nobody}, t + r.Timeout.Seconds()
		}
		return view{node: nobody}, t
	}
	begin, end := r.serve(n, t+r.RTT.Seconds()/2, r.Costs[r.Command])
	at := end + r.RTT.Seconds()/2
	return view{node: n, asOf: begin, at: at}, at
}

// choose takes the answer that the policy prefers.
func (r *run) choose(c *client, views []view) view {
	r.rng.Shuffle(len(views), func(a, b int) { views[a], views[b] = views[b], views[a] })
	score := func(v view) float64 {
		switch r.Choose {
		case ChooseFirst:
			return -v.at
		case ChooseEpoch:
			return float64(r.newest(c, v))
		case ChooseReachable:
			// Whoever knows of a promotion has marked the old master as failed.
			if r.failed != nobody && r.newest(c, v) >= 0 {
				return -1
			}
		}
		return 0 // known: all nodes know those that the client knows
	}
	return slices.MaxFunc(views, func(a, b view) int {
		switch sa, sb := score(a), score(b); {
		case sa < sb:
			return -1
		case sa > sb:
			return 1
		}
		return 0
	})
}

// newest is the last change that a view has, or nobody.
func (r *run) newest(c *client, v view) int {
	for k := len(r.changes) - 1; k >= c.base; k-- {
		if r.knows(v.node, k, v.asOf) {
			return k
		}
	}
	return c.base - 1
}

// answered ends a refresh: the chosen answer is the client's map from now on, also where it is older.
func (r *run) answered(e event) {
	c := &r.clients[e.client]
	c.refreshing = false
	r.slowest = max(r.slowest, e.at-c.startedAt)
	r.nextBeat(e.client, e.at)
	if r.Deferred {
		c.guardUntil, c.pending = e.at+r.Guard.Seconds(), false
		r.put(event{at: c.guardUntil, kind: cooled, client: e.client})
	}
	if e.index == nobody {
		return
	}
	r.takeView(e)
	if e.asOf >= r.downTo && !c.seesBack { // without a node that comes back it is never so late
		c.seesBack = true
		r.readLoading(e.at, r.downTo+r.Change.Loading.Seconds())
	}
}

// readLoading counts the reads that LOADING answers: of a client that spreads reads over the nodes of a shard.
func (r *run) readLoading(from, to float64) {
	if to > from {
		r.loading += (to - from) * r.Calls / float64(r.Masters*(1+r.Replicas))
	}
}

// takeView makes the answer of a node the client's map.
func (r *run) takeView(e event) {
	c := &r.clients[e.client]
	old := false
	for k := c.base; k < len(r.changes); k++ {
		x := &r.changes[k]
		if e.asOf < x.at {
			old = old || e.asOf >= r.Change.At.Seconds()
			break
		}
		if r.knows(e.index, k, e.asOf) {
			c.version[x.group] = uint16(k + 1)
			r.learn(e.client, k, e.at)
		} else {
			old = true
			if int(c.version[x.group]) > k {
				c.version[x.group] = uint16(x.before)
			}
			r.forget(e.client, k)
		}
		if e.asOf >= x.at+mostSpread*r.spread {
			c.base = k + 1
		}
	}
	if old {
		r.early++
	}
}

// result sums up.
func (r *run) result() Result {
	from := r.Change.At
	out := Result{
		Policy: r.Policy, Moved: r.moved.rate(from), Asks: r.asks.rate(from), Failed: r.failures.rate(from),
		Refresh: r.refreshes.rate(0), Early: r.early, SlowestNs: int64(r.slowest * 1e9), Backward: r.backward,
		Loading: Rate{Count: int(r.loading)},
	}
	out.Loading.PerSecond = r.loading / max(1, (r.Duration-from).Seconds())
	if r.lastMoved >= 0 {
		out.MovedFor = int64((r.lastMoved - from.Seconds()) * 1e9)
	}
	r.addServers(&out)
	known, never := r.times[:0:0], 0
	for j, t := range r.times {
		switch {
		case r.changes[j%len(r.changes)].to == nobody:
		case t < 0:
			never++
		default:
			known = append(known, t)
		}
	}
	out.Stale = staleOf(known, never, (r.Duration - r.Change.end()).Seconds())
	if out.Policy.On == nil {
		out.Policy.On = []Trigger{}
	}
	return out
}

// addServers adds what the servers did.
func (r *run) addServers(out *Result) {
	all := make(perSecond, len(r.moved))
	masters, replicas := 0, 0
	for i := range r.nodes {
		n := &r.nodes[i]
		sum := 0.0
		for j, calls := range n.calls {
			all[j] += calls
			out.NodeMost = max(out.NodeMost, float64(calls))
			out.CPUMost = max(out.CPUMost, n.busy[j])
			sum += n.busy[j]
		}
		if n.master {
			masters++
			out.CPUMasters += sum / r.Duration.Seconds()
		} else {
			replicas++
			out.CPUReplicas += sum / r.Duration.Seconds()
		}
	}
	out.Commands = all.rate(0)
	out.CPUMasters /= float64(masters)
	out.CPUReplicas /= float64(max(1, replicas))
}

// Compare simulates policies one after the other.
func Compare(ctx context.Context, s Setup, policies []Policy, progress func(string)) ([]Result, error) {
	results := []Result{}
	for _, p := range policies {
		progress("simulating " + p.Name)
		r, err := Run(ctx, s, p)
		if err != nil {
			return nil, err
		}
		results = append(results, r)
	}
	return results, nil
}
