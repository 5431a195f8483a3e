// Package watch keeps watch on a cluster and tells each change of its map the moment it is seen: slots that move,
// failovers, nodes that join and leave. It spares the cluster: replicas are asked first, with the command that costs
// them least; a reply is compared by its hash; the whole map is read only when that has changed.
//
// What a node hears, and when, was measured (scripts/topology-watch, docs/decisions/0016-topology-watch.md): from Redis
// 6.2 on every node knows of a moved slot some milliseconds after the node that received it; before, only that node
// does, and gossip takes seconds. Epochs (CLUSTER INFO) stay as they are when a node receives a second slot.
package watch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"slowpath/internal/wire/cluster"
	"slowpath/internal/wire/resp"
	"slowpath/internal/wire/target"
)

// What Watch cannot work with.
var (
	ErrNotCluster = errors.New("not a cluster")
	ErrForbidden  = errors.New("the user may not ask for the map")
)

// Options say what to watch. Event and Note are called from one goroutine, one after the other.
type Options struct {
	Seeds     []target.Target // nodes of the cluster; one that answers is enough
	PerSecond float64         // commands to the whole cluster, at most; messages of Publish beside them
	Publish   bool            // tell the changes on the channels of the cluster, too

	Ready func(Ready)       // watching has begun
	Event func(Event) error // an error ends the watch
	Note  func(string)      // what cannot be done, for people; each once
}

// Ready says how a cluster is watched.
type Ready struct {
	Masters, Replicas int
	Command           string        // the pulse: CLUSTER SLOTS or CLUSTER NODES
	Replica           bool          // replicas are asked for it, masters only for what is rare
	Beat              time.Duration // between two pulses, to any node
	Early             bool          // nodes hear of moved slots at once
}

// Summary is what came of a watch.
type Summary struct {
	Took      time.Duration
	Kinds     map[Kind]int
	Slots     int // that have moved, failovers left out
	Commands  int // sent to all nodes
	Busiest   int // of them, to the node that got most
	Nodes     int // that were asked
	Published int // messages
}

// lookout is a watch that runs.
type lookout struct {
	Options
	ctx       context.Context
	atlas     *Atlas
	schedule  schedule
	allowance *allowance
	answers   chan answer
	publisher *publisher
	started   time.Time
	moved     time.Time // when slots were last seen to move or to fail over
	noted     map[string]bool
	sent      map[string]int // commands by node
	summary   Summary
}

// Watch tells the changes of the cluster until ctx ends, which is no error. Errors are those of the first connection
// (*target.Error, *session.Error), ErrNotCluster, ErrForbidden, and what Event returns.
func Watch(ctx context.Context, o Options) (Summary, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l := &lookout{
		Options: o, ctx: ctx, atlas: NewAtlas(), answers: make(chan answer, 64), started: time.Now(),
		noted: map[string]bool{}, sent: map[string]int{},
	}
	l.summary.Kinds = map[Kind]int{}
	l.allowance = newAllowance(o.PerSecond, l.started)
	err := l.begin()
	if err == nil {
		if o.Publish {
			l.publisher = newPublisher(ctx, clientName)
		}
		err = l.run()
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) && len(l.schedule.posts) > 0 {
		err = nil
	}
	return l.sum(), err
}

// begin asks the seeds in turn for the map, and takes posts at all of its nodes.
func (l *lookout) begin() error {
	var first error
	for _, t := range l.Seeds {
		p := newPost("", t)
		a := p.answer(l.ctx, ask{survey: true})
		p.hangUp()
		l.sent[""] += a.sent
		l.allowance.giveBack(-a.sent)
		err := a.err
		if err == nil {
			err = l.settle(t, *a.view)
		}
		if err == nil {
			return nil
		}
		if err = explain(t, err); first == nil || l.ctx.Err() != nil {
			first = err
		}
	}
	if first == nil {
		first = fmt.Errorf("%w: no server was named", target.ErrBadTarget)
	}
	return first
}

// settle takes posts at the nodes of the first map. The seed is kept under the address by which it was reached.
func (l *lookout) settle(seed target.Target, m cluster.Map) error {
	if len(m.Nodes) == 1 && len(m.Nodes[0].Ranges) == 0 {
		return fmt.Errorf("%w: the node knows of no other, and has no slots; form the cluster first: redis-cli "+
			"--cluster create", ErrNotCluster)
	}
	viewer := l.atlas.Learn(m, time.Now())
	l.post(viewer, seed)
	l.man(seed)
	return nil
}

// explain says what is wrong with a seed.
func explain(t target.Target, err error) error {
	var refusal *resp.ServerError
	switch {
	case !errors.As(err, &refusal):
		return err
	case strings.Contains(refusal.Message, "cluster support disabled"):
		return fmt.Errorf("%w: %s is a server of its own (cluster-enabled no): it has no slots that could move",
			ErrNotCluster, t.Addr())
	case refusal.Code == "NOPERM":
		return fmt.Errorf("%w: CLUSTER NODES of %s: %w; allow it: ACL SETUSER NAME +cluster|nodes +cluster|slots "+
			"+client|info +info (before 7.0: +cluster +client +info)",
			ErrForbidden, t.Addr(), refusal)
	}
	return fmt.Errorf("CLUSTER NODES of %s: %w", t.Addr(), err)
}

// man has a post at every node whose address is known, and none where there is no node any more.
func (l *lookout) man(like target.Target) {
	members := map[string]bool{}
	for _, n := range l.atlas.Nodes() {
		members[n.ID] = true
		p := l.schedule.find(n.ID)
		if p == nil && n.Addr != "" {
			p = l.post(n.ID, like.WithAddr(n.Addr))
		}
		if p != nil {
			p.primary = n.Primary
		}
	}
	for _, p := range append([]*post(nil), l.schedule.posts...) {
		if !members[p.id] {
			p.end()
			l.schedule.remove(p)
		}
	}
}

func newPost(id string, t target.Target) *post {
	return &post{id: id, target: t, asks: make(chan ask, 1)}
}

func (l *lookout) post(id string, t target.Target) *post {
	p := newPost(id, t)
	ctx, cancel := context.WithCancel(l.ctx)
	p.end = cancel
	l.schedule.add(p)
	l.schedule.hurry(p)
	go p.serve(ctx, l.answers)
	return p
}

func (l *lookout) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !l.noted[text] && l.Note != nil {
		l.noted[text] = true
		l.Note(text)
	}
}

func (l *lookout) sum() Summary {
	s := l.summary
	s.Took = time.Since(l.started)
	for id, n := range l.sent {
		s.Commands += n
		if id != "" {
			s.Nodes++
			s.Busiest = max(s.Busiest, n)
		}
	}
	if l.publisher != nil {
		s.Published = l.publisher.count()
	}
	return s
}
