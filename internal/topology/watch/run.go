package watch

import (
	"errors"
	"time"

	"slowpath/internal/wire/cluster"
	"slowpath/internal/wire/resp"
	"slowpath/internal/wire/target"
)

// learning bounds the time in which the views of the nodes are gathered before a difference between them is news.
const learning = 5 * time.Second

// run asks and listens until the context ends or Event fails.
func (l *lookout) run() error {
	begun := time.Now()
	live := false
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-l.ctx.Done():
			return l.ctx.Err()
		case a := <-l.answers:
			if err := l.hear(a, live); err != nil {
				return err
			}
		case <-timer.C:
			timer.Reset(l.send(time.Now()))
		}
		if live || !l.heardAll() && time.Since(begun) < learning {
			continue
		}
		live = true
		if err := l.goLive(); err != nil {
			return err
		}
	}
}

// heardAll reports whether every node has been asked, and the cost of the pulses is known.
func (l *lookout) heardAll() bool {
	for _, p := range l.schedule.posts {
		if !p.asked {
			return false
		}
	}
	return l.schedule.gap > 0
}

func (l *lookout) goLive() error {
	reached := false
	for _, p := range l.schedule.posts {
		reached = reached || p.asked && !p.lost
	}
	if !reached {
		return errors.Join(l.schedule.posts[0].err, errUnreachable)
	}
	if l.Ready == nil {
		return nil
	}
	set := l.schedule.pulseSet()
	r := Ready{Command: l.schedule.pulse.String(), Early: l.schedule.hearsEarly(), Beat: l.schedule.beat(len(set),
		time.Now())}
	for _, p := range l.schedule.posts {
		if p.primary {
			r.Masters++
		} else {
			r.Replicas++
		}
	}
	r.Replica = len(set) > 0 && !set[0].primary
	l.Ready(r)
	return nil
}

var errUnreachable = errors.New("no node of the cluster can be reached at the address that it announces; see " +
	"cluster-announce-ip, or run slowpath where it is reachable")

// send asks the next node, and says how long to wait.
func (l *lookout) send(now time.Time) time.Duration {
	l.watchConnections(now)
	o, ok, wait := l.schedule.next(now, func(commands int) bool { return l.allowance.take(commands, now) })
	if !ok {
		return wait
	}
	o.post.busy, o.post.reserved = true, o.cost
	o.post.asks <- o.ask // has room: it is not busy
	return wait
}

// watchConnections says what the publisher could not do, and finds connections that were closed: most often the process
// has ended, which the cluster itself will know much later.
func (l *lookout) watchConnections(now time.Time) {
	if now.Sub(l.schedule.lookedAt) < hangupEvery {
		return
	}
	l.schedule.lookedAt = now
	if l.publisher != nil {
		if err := l.publisher.trouble(); err != nil {
			l.note("%v", err)
		}
	}
	for _, p := range l.schedule.posts {
		if !p.busy && (p.lost && !now.Before(p.next) || p.conn.Load() != nil && p.hungUp()) {
			l.schedule.hurry(p)
		}
	}
}

// hear takes in what a node has answered.
func (l *lookout) hear(a answer, live bool) error {
	p := a.post
	p.busy, p.asked = false, true
	p.hears = a.early
	l.allowance.giveBack(p.reserved - a.sent)
	if l.sent[p.id] += a.sent; l.schedule.find(p.id) != p {
		return nil // it has left meanwhile
	}
	if a.err != nil {
		l.failed(p, a)
		return nil
	}
	p.fails, p.lost, p.err = 0, false, nil
	l.schedule.early = l.allEarly()
	if a.costs != nil && a.costs[a.costs.cheapest()] < refused {
		l.schedule.pulse = a.costs.cheapest()
		l.schedule.gap = time.Duration(float64(a.costs[l.schedule.pulse]) / nodeShare)
	}
	if a.view == nil {
		return nil
	}
	return l.see(p, *a.view, a.at, live)
}

// allEarly reports whether all nodes hear of moves at once: one of an older version may be the one that is given a
// slot.
func (l *lookout) allEarly() bool {
	known := false
	for _, p := range l.schedule.posts {
		if p.hears == no {
			return false
		}
		known = known || p.hears == yes
	}
	return known
}

// failed decides when to ask the node again.
func (l *lookout) failed(p *post, a answer) {
	var refusal *resp.ServerError
	p.err = a.err
	switch {
	case errors.As(a.err, &refusal) && refusal.Code == "NOPERM":
		p.next = a.at.Add(lastRetry)
		l.note("%v", explain(p.target, a.err))
	case !broken(a.err): // such as LOADING
		p.next = a.at.Add(retry(2))
	default:
		if !p.lost && p.primary {
			l.schedule.stir(a.at, trouble)
		}
		p.lost = true
		p.next = a.at.Add(retry(p.fails))
		if p.fails++; p.fails >= 3 {
			l.atlas.Forget(p.id)
			l.relocate(p)
		}
	}
}

// relocate looks for a node that cannot be reached where the others say it is now.
func (l *lookout) relocate(p *post) {
	if addr := l.atlas.Addr(p.id); addr != "" && addr != p.target.Addr() {
		p.end()
		l.schedule.remove(p)
		l.post(p.id, p.target.WithAddr(addr)).fails = p.fails
	}
}

// see compares a whole map with what is believed.
func (l *lookout) see(p *post, m cluster.Map, at time.Time, live bool) error {
	if viewerOf(m) != p.id {
		p.lost, p.next = true, at.Add(lastRetry) // another node has this address now
		return nil
	}
	if !live {
		l.atlas.Learn(m, at)
		l.man(p.target)
		return nil
	}
	news := l.atlas.Absorb(m, at)
	if news.Behind > 0 && l.schedule.hearsEarly() && at.Sub(l.moved) > late && !l.moved.IsZero() {
		l.schedule.mistrust = true
		l.note("%s had not heard of a moved slot after %v, so masters are asked from now on", p.target.Addr(),
			at.Sub(l.moved).Round(time.Millisecond))
	}
	for _, id := range news.Doubts {
		if doubted := l.schedule.find(id); doubted != nil {
			l.schedule.hurry(doubted)
		}
	}
	if len(news.Events) > 0 {
		l.schedule.stir(at, lively)
	}
	l.man(p.target)
	return l.tell(p, news.Events)
}

func viewerOf(m cluster.Map) string {
	for _, n := range m.Nodes {
		if n.HasFlag("myself") {
			return n.ID
		}
	}
	return ""
}

func (l *lookout) tell(p *post, events []Event) error {
	for _, e := range events {
		l.summary.Kinds[e.Kind]++
		if e.Kind == SlotMoved {
			l.summary.Slots += e.SlotCount()
		}
		if len(e.Slots) > 0 {
			l.moved = e.Time
		}
		if l.publisher != nil {
			l.publisher.tell(e, l.publishers(p))
		}
		if err := l.Event(e); err != nil {
			return err
		}
	}
	return nil
}

// publishers are where a message may be published, in order: any node passes it on to all others.
func (l *lookout) publishers(p *post) []target.Target {
	list := []target.Target{p.target}
	for _, q := range l.schedule.posts {
		if q != p && !q.lost {
			list = append(list, q.target)
		}
	}
	return list
}
