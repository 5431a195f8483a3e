package watch

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"slowpath/internal/wire/cluster"
	"slowpath/internal/wire/resp"
	"slowpath/internal/wire/target"
)

// maxLearning bounds the time in which the views of the nodes are collected before a difference between them counts as
// a change.
const maxLearning = 5 * time.Second

// run polls until the context ends or Event fails.
func (w *watcher) run() error {
	startedAt := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-w.ctx.Done():
			if !w.live {
				return w.notBegun()
			}
			return nil
		case r := <-w.responses:
			if err := w.handle(r, w.live); err != nil {
				return err
			}
		case <-timer.C:
			timer.Reset(w.send(time.Now()))
		}
		if w.live || !w.allAnswered() && time.Since(startedAt) < maxLearning {
			continue
		}
		w.live = true
		if err := w.goLive(); err != nil {
			return err
		}
	}
}

// notBegun says which nodes had not answered when the watch ended.
func (w *watcher) notBegun() error {
	for _, p := range w.schedule.pollers {
		switch {
		case p.err != nil:
			return fmt.Errorf("%v: %w", explain(p.target, p.err), w.ctx.Err())
		case !p.answered:
			return fmt.Errorf("%s has not answered yet: %w", p.target.Addr(), w.ctx.Err())
		}
	}
	return fmt.Errorf("the cost of asking is not known yet: %w", w.ctx.Err())
}

// allAnswered reports whether every node has answered, and the cost of the poll commands is known.
func (w *watcher) allAnswered() bool {
	for _, p := range w.schedule.pollers {
		if !p.answered {
			return false
		}
	}
	return w.schedule.gap > 0
}

func (w *watcher) goLive() error {
	var why error
	reached := false
	for _, p := range w.schedule.pollers {
		reached = reached || p.answered && !p.unreachable
		why = cmp.Or(why, p.err)
	}
	if !reached {
		return errors.Join(why, ErrUnreachable)
	}
	if w.Ready == nil {
		return nil
	}
	set := w.schedule.pollSet()
	r := Ready{
		Command: w.schedule.command.String(), Broadcast: w.schedule.anyNodeWillDo(),
		PollEvery: w.schedule.pollEvery(len(set),
			time.Now()),
	}
	for _, p := range w.schedule.pollers {
		if p.primary {
			r.Masters++
		} else {
			r.Replicas++
		}
	}
	r.Replica = len(set) > 0 && !set[0].primary
	w.Ready(r)
	return nil
}

// ErrUnreachable says that the map names no node that can be asked.
var ErrUnreachable = errors.New("no node of the cluster can be reached at the address that it announces; see " +
	"cluster-announce-ip, or run slowpath where it is reachable")

// send sends the next request, and says how long to wait.
func (w *watcher) send(now time.Time) time.Duration {
	w.watchConnections(now)
	t, ok, wait := w.schedule.next(now, func(commands int) bool { return w.limit.take(commands, now) })
	if !ok {
		return wait
	}
	t.poller.busy, t.poller.reserved = true, t.cost
	t.poller.requests <- t.request // has room: it is not busy
	return wait
}

// watchConnections reports errors of the publisher, and finds closed connections: most often the process has ended,
// which the cluster itself learns much later.
func (w *watcher) watchConnections(now time.Time) {
	if now.Sub(w.schedule.connCheckedAt) < connCheckEvery {
		return
	}
	w.schedule.connCheckedAt = now
	if w.publisher != nil {
		if err := w.publisher.takeError(); err != nil {
			w.note("%v", err)
		}
	}
	for _, p := range w.schedule.pollers {
		if !p.busy && (p.unreachable && !now.Before(p.next) || p.conn.Load() != nil && p.hungUp()) {
			w.schedule.addUrgent(p)
		}
	}
}

// handle processes a response of a node.
func (w *watcher) handle(r response, live bool) error {
	p := r.poller
	p.busy, p.answered = false, true
	p.broadcastKnown = r.broadcasts
	w.limit.refund(p.reserved - r.sent)
	if w.sent[p.id] += r.sent; w.schedule.find(p.id) != p {
		return nil // it has left meanwhile
	}
	if r.err != nil {
		w.handleError(p, r)
		return w.emitUnreachable(p, r.at, live)
	}
	p.fails, p.unreachable, p.err = 0, false, nil
	if err := w.emitBack(p, r.at); err != nil {
		return err
	}
	w.schedule.broadcast = w.allBroadcast()
	if r.costs != nil && r.costs[r.costs.cheapest()] < refusedCost {
		w.schedule.command = r.costs.cheapest()
		w.schedule.gap = time.Duration(float64(r.costs[w.schedule.command]) / nodeShare)
	}
	if r.view == nil {
		return nil
	}
	return w.handleMap(p, *r.view, r.at, live)
}

// failsToReport is after how many failed attempts in a row a node counts as unreachable: the first may be a connection
// that was closed, by CLIENT KILL or a proxy.
const failsToReport = 2

// emitUnreachable reports a node that does not answer this watch, once until it answers again. The cluster itself marks
// it as failed only after cluster-node-timeout, and a replica never has a failover.
func (w *watcher) emitUnreachable(p *poller, at time.Time, live bool) error {
	if !live || p.reported || !p.unreachable || p.fails < failsToReport || w.schedule.find(p.id) != p {
		return nil
	}
	p.reported = true
	return w.emit(p, []Event{{Time: at, Kind: NodeUnreachable, From: p.target.Addr(), Node: p.id}})
}

// emitBack reports that such a node answers again.
func (w *watcher) emitBack(p *poller, at time.Time) error {
	if !p.reported {
		return nil
	}
	p.reported = false
	return w.emit(p, []Event{{Time: at, Kind: NodeBack, To: p.target.Addr(), Node: p.id}})
}

// allBroadcast reports whether all nodes broadcast moves. One node of an older version is enough to miss a move: it
// may be the one that receives the slot.
func (w *watcher) allBroadcast() bool {
	known := false
	for _, p := range w.schedule.pollers {
		if p.broadcastKnown == no {
			return false
		}
		known = known || p.broadcastKnown == yes
	}
	return known
}

// handleError decides when to poll the node again.
func (w *watcher) handleError(p *poller, r response) {
	var refusal *resp.ServerError
	p.err = r.err
	switch {
	case errors.As(r.err, &refusal) && refusal.Code == "NOPERM":
		p.next = r.at.Add(lastRetry)
		w.note("%v", explain(p.target, r.err))
	case !broken(r.err): // such as LOADING
		p.next = r.at.Add(retry(2))
	default:
		if !p.unreachable && p.primary {
			w.schedule.stayActive(r.at, activeForLoss)
		}
		p.unreachable = true
		p.next = r.at.Add(retry(p.fails))
		if p.fails++; p.fails >= 3 {
			w.state.forgetView(p.id)
			w.relocate(p)
		}
	}
}

// relocate replaces the poller of an unreachable node if the other nodes know a new address for it.
func (w *watcher) relocate(p *poller) {
	if addr := w.state.addr(p.id); addr != "" && addr != p.target.Addr() && w.mayLogIn(addr) {
		p.stop()
		w.schedule.remove(p)
		next := w.addPoller(p.id, w.seed.WithAddr(addr))
		next.fails, next.reported = p.fails, p.reported
	}
}

// handleMap merges the view of a node and emits the changes.
func (w *watcher) handleMap(p *poller, m cluster.Map, at time.Time, live bool) error {
	if me, _ := m.Myself(); me.ID != p.id {
		p.unreachable, p.next = true, at.Add(lastRetry) // another node has this address now
		return nil
	}
	if !live {
		w.state.load(m, at)
		w.syncPollers()
		return nil
	}
	changes := w.state.merge(m, at)
	if changes.stale > 0 && w.schedule.anyNodeWillDo() && at.Sub(w.moved) > maxBroadcastDelay && !w.moved.IsZero() {
		w.schedule.broadcastLate = true
		w.note("%s did not know of a moved slot after %v: masters are polled from now on", p.target.Addr(),
			at.Sub(w.moved).Round(time.Millisecond))
	}
	if changes.full {
		w.note("the nodes have named more than %d nodes: further ones are left out", maxEverKnown)
	}
	for _, id := range changes.recheck {
		if node := w.schedule.find(id); node != nil {
			w.schedule.addUrgent(node)
		}
	}
	if len(changes.events) > 0 {
		w.schedule.stayActive(at, activeFor)
	}
	w.syncPollers()
	return w.emit(p, changes.events)
}

func (w *watcher) emit(p *poller, events []Event) error {
	for _, e := range events {
		w.summary.Kinds[e.Kind]++
		if e.Kind == SlotMoved {
			w.summary.Slots += e.slotCount()
		}
		if len(e.Slots) > 0 {
			w.moved = e.Time
		}
		if w.publisher != nil {
			w.publisher.add(e, w.publishTargets(p))
		}
		if err := w.Event(e); err != nil {
			return err
		}
	}
	return nil
}

// publishTargets lists where a message may be published, in order: any node passes it on to all others.
func (w *watcher) publishTargets(p *poller) []target.Target {
	list := []target.Target{p.target}
	for _, q := range w.schedule.pollers {
		if q != p && !q.unreachable {
			list = append(list, q.target)
		}
	}
	return list
}
