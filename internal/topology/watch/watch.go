// Package watch polls a cluster and emits each change of its map as soon as it is seen: slots that move, failovers,
// nodes that join and leave. It keeps the load on the cluster low: it polls replicas first, with the command that
// costs them least, compares replies by their hash, and reads the whole map only when the hash has changed.
//
// When a node learns of a change was measured (scripts/topology-watch, docs/decisions/0016-topology-watch.md): from
// Redis 6.2 every node knows of a moved slot some milliseconds after the node that received it; before 6.2 only that
// node does, and gossip takes seconds. Epochs (CLUSTER INFO) do not change when a node receives a second slot.
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

// Errors of Watch.
var (
	ErrNotCluster = errors.New("not a cluster")
	ErrForbidden  = errors.New("the user may not ask for the map")
)

// Options say what to watch. Ready, Event and Note are called from one goroutine.
type Options struct {
	Seeds     []target.Target // nodes of the cluster; one that answers is enough
	PerSecond float64         // limit of commands to the whole cluster; does not count the messages of Publish
	Cluster   bool            // the password may be sent to all nodes that the map names (-c)
	Publish   bool            // also publish the changes on channels of the cluster

	Ready func(Ready)       // called when watching begins
	Event func(Event) error // an error ends the watch
	Note  func(string)      // warnings to print; each only once
}

// Ready says how a cluster is watched.
type Ready struct {
	Masters, Replicas int
	Command           string        // that polls for changes: CLUSTER SLOTS or CLUSTER NODES
	Replica           bool          // only replicas are polled; masters are only asked for the whole map
	PollEvery         time.Duration // between two polls, of whichever node
	Broadcast         bool          // nodes broadcast moved slots at once, so any node can be polled
}

// Summary counts what a watch saw and sent.
type Summary struct {
	Took      time.Duration
	Kinds     map[Kind]int
	Slots     int // moved slots, without failovers
	Commands  int // sent to all nodes
	Busiest   int // of them, sent to the node that got most
	Nodes     int // that were polled
	Published int // messages
}

// watcher is a running watch.
type watcher struct {
	Options
	ctx       context.Context
	state     *mapState
	schedule  schedule
	limit     *rateLimit
	responses chan response
	publisher *publisher
	started   time.Time
	live      bool      // watching has begun: changes are emitted
	moved     time.Time // when slots last moved or failed over
	noted     map[string]bool
	seed      target.Target  // that answered
	remote    string         // address at which it did
	withheld  bool           // a node was left out, since the password would be sent there
	sent      map[string]int // commands by node
	summary   Summary
}

// Watch emits the changes of the cluster until ctx ends, which is no error once watching has begun. Errors are those of
// the first connection (*target.Error, *session.Error), ErrNotCluster, ErrForbidden, and what Event returns.
func Watch(ctx context.Context, o Options) (Summary, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := &watcher{
		Options: o, ctx: ctx, state: newMapState(), responses: make(chan response, 64), started: time.Now(),
		noted: map[string]bool{}, sent: map[string]int{},
	}
	w.summary.Kinds = map[Kind]int{}
	w.limit = newRateLimit(o.PerSecond, w.started)
	err := w.connect()
	if err == nil {
		if o.Publish {
			w.publisher = newPublisher(ctx, clientName)
		}
		err = w.run()
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) && w.live {
		err = nil
	}
	return w.sum(), err
}

// connect asks the seeds in turn for the map, and starts pollers for all of its nodes.
func (w *watcher) connect() error {
	var first error
	for _, t := range w.Seeds {
		p := newPoller("", t)
		r := p.respond(w.ctx, request{fullMap: true})
		if p.session != nil {
			w.seed, w.remote = t, p.session.RemoteAddr()
		}
		p.hangUp()
		w.sent[""] += r.sent
		w.limit.refund(-r.sent)
		err := r.err
		if err == nil {
			err = w.start(*r.view)
		}
		if err == nil {
			return nil
		}
		if err = explain(t, err); first == nil || w.ctx.Err() != nil {
			first = err
		}
	}
	if first == nil {
		first = fmt.Errorf("%w: no server was named", target.ErrBadTarget)
	}
	return first
}

// start starts pollers for the nodes of the first map. The seed keeps the address by which it was reached.
func (w *watcher) start(m cluster.Map) error {
	if len(m.Nodes) == 1 && len(m.Nodes[0].Ranges) == 0 {
		return fmt.Errorf("%w: the node knows no other node and has no slots; create the cluster first: redis-cli "+
			"--cluster create", ErrNotCluster)
	}
	if _, marked := m.Myself(); !marked {
		return fmt.Errorf("%w: CLUSTER NODES does not mark the node that answers (myself)", cluster.ErrMalformed)
	}
	w.addPoller(w.state.load(m, time.Now()), w.seed)
	w.syncPollers()
	return nil
}

// explain says what is wrong with a seed.
func explain(t target.Target, err error) error {
	var refusal *resp.ServerError
	switch {
	case errors.Is(err, cluster.ErrNoNodes):
		return fmt.Errorf("%w: %s: %w", ErrNotCluster, t.Addr(), err)
	case errors.Is(err, cluster.ErrMalformed), errors.Is(err, cluster.ErrTooLarge):
		return fmt.Errorf("%s: %w; is this a node of a cluster? Check the host and the port", t.Addr(), err)
	case !errors.As(err, &refusal):
		return err
	case strings.Contains(refusal.Message, "cluster support disabled"):
		return fmt.Errorf("%w: %s is a single server (cluster-enabled no): it has no slots that could move",
			ErrNotCluster, t.Addr())
	case refusal.Code == "NOPERM":
		return fmt.Errorf("%w: CLUSTER NODES of %s: %w; allow it: %s (before 7.0: +cluster +client +info)",
			ErrForbidden, t.Addr(), refusal, t.Grant("+cluster|nodes +cluster|slots +client|info +info"))
	}
	return fmt.Errorf("CLUSTER NODES of %s: %w", t.Addr(), err)
}

// syncPollers starts a poller for every node whose address is known and that may have the password, and stops those of
// nodes that are gone.
func (w *watcher) syncPollers() {
	members := map[string]bool{}
	for _, n := range w.state.nodes() {
		members[n.ID] = true
		p := w.schedule.find(n.ID)
		if p == nil && n.Addr != "" && w.hasRoom() && w.mayLogIn(n.Addr) {
			p = w.addPoller(n.ID, w.seed.WithAddr(n.Addr))
		}
		if p != nil {
			p.primary = n.Primary
		}
	}
	for _, p := range append([]*poller(nil), w.schedule.pollers...) {
		if !members[p.id] {
			p.stop()
			w.schedule.remove(p)
		}
	}
}

// maxPolled bounds the nodes that are asked: each has a connection, and its view of all others. Redis recommends at
// most so many in a cluster.
const maxPolled = 1000

// hasRoom reports whether one more node may be asked, and notes once that one may not.
func (w *watcher) hasRoom() bool {
	if len(w.schedule.pollers) < maxPolled {
		return true
	}
	w.note("no more than %d nodes are asked: what only others see is seen late", maxPolled)
	return false
}

// mayLogIn reports whether a node that the map names may get the password, and notes once that one may not.
func (w *watcher) mayLogIn(addr string) bool {
	if w.Cluster || w.seed.MayLogIn(w.remote, w.seed.WithAddr(addr)) {
		return true
	}
	if !w.withheld {
		w.withheld = true
		w.note("nodes that are not in a private network with %s, such as %s, are not asked: the password would be "+
			"sent there; -c, if all nodes that it names may have the password", w.seed.Addr(), addr)
	}
	return false
}

func newPoller(id string, t target.Target) *poller {
	return &poller{id: id, target: t, requests: make(chan request, 1)}
}

func (w *watcher) addPoller(id string, t target.Target) *poller {
	p := newPoller(id, t)
	ctx, cancel := context.WithCancel(w.ctx)
	p.stop = cancel
	w.schedule.add(p)
	w.schedule.addUrgent(p)
	go p.serve(ctx, w.responses)
	return p
}

// maxNotes bounds the warnings of a watch, in which a server's own words are.
const maxNotes = 1000

func (w *watcher) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !w.noted[text] && w.Note != nil && len(w.noted) < maxNotes {
		w.noted[text] = true
		w.Note(text)
	}
}

func (w *watcher) sum() Summary {
	s := w.summary
	s.Took = time.Since(w.started)
	for id, n := range w.sent {
		s.Commands += n
		if id != "" {
			s.Nodes++
			s.Busiest = max(s.Busiest, n)
		}
	}
	if w.publisher != nil {
		s.Published = w.publisher.published()
	}
	return s
}
