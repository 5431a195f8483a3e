//go:build linux

package engine

import (
	"container/heap"
	"fmt"

	"slowpath/internal/load/workload"
)

// A replay sends the requests of a log instead of drawn ones. A client of the log is bound to a connection of the load,
// and in a routed load to a client of it, so that its requests go out in their order; those of different clients meet
// at their times only. With a pace each request is due at its time in the log; without, when there is room for it.

// Ops are the kinds of calls of the load.
func (o *Options) Ops() []workload.Op {
	if o.Replay != nil {
		return o.Replay.Ops
	}
	return o.Workload.Ops
}

// Paced tells whether the load follows the times of a log.
func (o *Options) Paced() bool { return o.Replay != nil && o.ReplaySpeed > 0 }

// checkReplay refuses what a log has no place for.
func (o *Options) checkReplay() error {
	if o.Replay == nil {
		return nil
	}
	for _, with := range []struct {
		on   bool
		what string
	}{
		{o.Workload != nil, "a workload"},
		{len(o.Schedule) > 0, "a schedule"},
		{o.PerCall, "a connection for each call"},
		{o.ReconnectEvery > 0, "connections that are opened again"},
		{o.ColdStart, "a cold start"},
		{o.Pool > 0, "a pool"},
		{o.Batch, "pipelines in batches"},
		{o.Subscribers > 0, "subscribers"},
		{o.Verify, "replies that are verified"},
	} {
		if with.on {
			return fmt.Errorf("%w: the replay of a log, and %s: leave out one", ErrOptions, with.what)
		}
	}
	if !(o.ReplaySpeed >= 0) {
		return fmt.Errorf("%w: a replay at a speed of %v: give a number above 0, or 0 for no pace", ErrOptions,
			o.ReplaySpeed)
	}
	return nil
}

// lane is the requests of the clients of a log that are bound to a seat, or in a routed load to a client.
type lane struct {
	*workload.ReplayStream
	number int
	due    int64 // of the next request, by the clock; without pace the start
	waits  bool  // in player.next
}

// player is the part of a worker that replays a log.
type player struct {
	lanes []*lane
	next  lanes // that have room for their next request, which is not due yet
	paced bool
	start int64
}

// replays makes a worker one that replays its share of the log: connection i of all is seat i/threads of worker
// i%threads, as they are dealt out.
func (w *worker) replays(parts []*workload.ReplayStream) {
	w.player = &player{paced: w.r.Paced()}
	w.left = 0
	for i := w.index; i < len(parts); i += w.r.Threads {
		w.player.lanes = append(w.player.lanes, &lane{ReplayStream: parts[i], number: len(w.player.lanes)})
		w.left += int64(parts[i].Left())
	}
}

// begin tells the lanes when the load began.
func (p *player) begin(start int64) {
	p.start = start
	for _, l := range p.lanes {
		p.look(l)
	}
}

// look finds when the next request of a lane is due.
func (p *player) look(l *lane) {
	due, _ := l.Due()
	l.due = p.start + int64(due)
}

// play sends what is due of a lane and there is room for. One that waits for its time stays as it is until playDue
// takes it: the heap is in the order of the times.
func (w *worker) play(number int) {
	l := w.player.lanes[number]
	if l.waits {
		return
	}
	for w.left != 0 && l.Left() > 0 && w.hasRoom(number) {
		if l.due > w.now {
			w.player.wait(l)
			return
		}
		w.playOne(l)
	}
}

// hasRoom tells whether the connection of a seat, or a client of a routed load, can take one more call.
func (w *worker) hasRoom(number int) bool {
	if w.routing != nil {
		return int(w.routing.under[number]) < w.r.Pipeline
	}
	c := w.conns[number]
	return !c.dead && c.count < w.r.Pipeline
}

// playOne sends the next request of a lane.
func (w *worker) playOne(l *lane) {
	intended, sent := l.due, int64(0)
	if !w.player.paced {
		intended, sent = w.now, w.now
	}
	if w.routing != nil {
		x := w.routing
		var q workload.Request
		x.draft, q = l.Next(x.draft[:0])
		x.under[l.number]++
		w.drawn(q, int32(l.number), intended, sent)
	} else {
		c := w.conns[l.number]
		out, q := l.Next(w.draft(c))
		c.out = out
		w.begun()
		c.push(intended, w.now, q)
	}
	w.player.look(l)
}

// playDue sends what has become due.
func (w *worker) playDue() {
	p := w.player
	for len(p.next) > 0 && p.next[0].due <= w.now && w.left != 0 {
		l := p.next[0]
		heap.Pop(&p.next)
		l.waits = false
		if !w.hasRoom(l.number) { // its connection was lost meanwhile
			continue
		}
		_ = w.tally.Late.RecordValue(min(w.now-l.due, longest)) // in range
		w.playOne(l)
		w.play(l.number)
		if w.routing == nil {
			w.flush(w.conns[l.number])
		}
	}
}

// nextPlayed is when a request is due that there is room for, at the latest until.
func (w *worker) nextPlayed(until int64) int64 {
	if next := w.player.next; len(next) > 0 && w.left != 0 {
		until = min(until, next[0].due)
	}
	return until
}

// leaveLog counts what the log had due before the end and nobody sent.
func (w *worker) leaveLog() {
	for _, l := range w.player.lanes {
		for w.player.paced && l.Left() > 0 && l.due < w.ended {
			w.unsent++
			w.tally.age(&w.tally.AgeFromIntended, w.ended-l.due)
			l.Skip()
			w.player.look(l)
		}
	}
}

func (p *player) wait(l *lane) {
	if !l.waits {
		l.waits = true
		heap.Push(&p.next, l)
	}
}

// lanes is a heap, the first that is due on top.
type lanes []*lane

func (l lanes) Len() int           { return len(l) }
func (l lanes) Less(i, j int) bool { return l[i].due < l[j].due }
func (l lanes) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }
func (l *lanes) Push(x any)        { *l = append(*l, x.(*lane)) }
func (l *lanes) Pop() any {
	last := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return last
}
