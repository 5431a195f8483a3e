//go:build linux

package engine

import (
	"container/heap"
	"fmt"

	"slowpath/internal/load/workload"
)

// A replay sends the requests of a log instead of drawn ones. A client of the log is bound to a connection of the load,
// or to a client of a routed load, so that its requests keep their order; between clients only their times order them.
// With a speed each request is due at its time in the log; without, when there is room for it.

// Ops are the kinds of calls of the load.
func (o *Options) Ops() []workload.Op {
	if o.Replay != nil {
		return o.Replay.Ops
	}
	return o.Workload.Ops
}

// Paced: the load follows the times of a log.
func (o *Options) Paced() bool { return o.Replay != nil && o.ReplaySpeed > 0 }

// checkReplay refuses options that do not apply to a replay.
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
		return fmt.Errorf("%w: a replay at a speed of %v: give a number above 0, or 0 for as fast as possible",
			ErrOptions,
			o.ReplaySpeed)
	}
	return nil
}

// replayQueue is the requests of the clients of a log that are bound to a connection, or to a client of a routed load.
type replayQueue struct {
	*workload.ReplayStream
	number int
	due    int64 // of the next request, by the clock; not paced: the start of the load
	queued bool  // in replayer.due
}

// replayer is the part of a worker that replays a log.
type replayer struct {
	queues []*replayQueue
	due    dueQueue // queues with room for their next request, which is not due yet
	paced  bool
	start  int64
}

// initReplay gives a worker its share of the log: connection i of all has index i/threads in worker i%threads.
func (w *worker) initReplay(parts []*workload.ReplayStream) {
	w.replayer = &replayer{paced: w.r.Paced()}
	w.remaining = 0
	for i := w.index; i < len(parts); i += w.r.Threads {
		w.replayer.queues = append(w.replayer.queues, &replayQueue{
			ReplayStream: parts[i],
			number:       len(w.replayer.queues),
		})
		w.remaining += int64(parts[i].Remaining())
	}
}

// begin sets the start of the load.
func (p *replayer) begin(start int64) {
	p.start = start
	for _, l := range p.queues {
		p.updateDue(l)
	}
}

// updateDue sets when the next request of a queue is due.
func (p *replayer) updateDue(l *replayQueue) {
	due, _ := l.Due()
	l.due = p.start + int64(due)
}

// sendDue sends the requests of a queue that are due and have room. A queue in the heap is left alone until sendAllDue
// takes it out: the heap is in the order of their due times.
func (w *worker) sendDue(number int) {
	l := w.replayer.queues[number]
	if l.queued {
		return
	}
	for w.remaining != 0 && l.Remaining() > 0 && w.hasRoom(number) {
		if l.due > w.now {
			w.replayer.wait(l)
			return
		}
		w.sendNext(l)
	}
}

// hasRoom: the connection with this index, or the client of a routed load, can take one more call.
func (w *worker) hasRoom(number int) bool {
	if w.routing != nil {
		return int(w.routing.inFlight[number]) < w.r.Pipeline
	}
	c := w.conns[number]
	return !c.dead && c.count < w.r.Pipeline
}

// sendNext sends the next request of a queue.
func (w *worker) sendNext(l *replayQueue) {
	intended, sent := l.due, int64(0)
	if !w.replayer.paced {
		intended, sent = w.now, w.now
	}
	if w.routing != nil {
		x := w.routing
		var q workload.Request
		x.draft, q = l.Next(x.draft[:0])
		x.inFlight[l.number]++
		w.drawn(q, int32(l.number), intended, sent)
	} else {
		c := w.conns[l.number]
		out, q := l.Next(w.draft(c))
		c.out = out
		w.countBegun()
		c.push(intended, w.now, q)
	}
	w.replayer.updateDue(l)
}

// sendAllDue sends the requests that have become due.
func (w *worker) sendAllDue() {
	p := w.replayer
	for len(p.due) > 0 && p.due[0].due <= w.now && w.remaining != 0 {
		l := p.due[0]
		heap.Pop(&p.due)
		l.queued = false
		if !w.hasRoom(l.number) { // its connection was lost meanwhile
			continue
		}
		_ = w.tally.Late.RecordValue(min(w.now-l.due, maxLatency)) // in range
		w.sendNext(l)
		w.sendDue(l.number)
		if w.routing == nil {
			w.flush(w.conns[l.number])
		}
	}
}

// nextReplayed is when the next request with room is due, at the latest until.
func (w *worker) nextReplayed(until int64) int64 {
	if next := w.replayer.due; len(next) > 0 && w.remaining != 0 {
		until = min(until, next[0].due)
	}
	return until
}

// countUnsentOfLog counts the requests of the log that were due before the end and not sent.
func (w *worker) countUnsentOfLog() {
	for _, l := range w.replayer.queues {
		for w.replayer.paced && l.Remaining() > 0 && l.due < w.ended {
			w.unsent++
			w.tally.age(&w.tally.AgeFromIntended, w.ended-l.due)
			l.Skip()
			w.replayer.updateDue(l)
		}
	}
}

func (p *replayer) wait(l *replayQueue) {
	if !l.queued {
		l.queued = true
		heap.Push(&p.due, l)
	}
}

// dueQueue is a heap of queues, the first that is due on top.
type dueQueue []*replayQueue

func (l dueQueue) Len() int           { return len(l) }
func (l dueQueue) Less(i, j int) bool { return l[i].due < l[j].due }
func (l dueQueue) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }
func (l *dueQueue) Push(x any)        { *l = append(*l, x.(*replayQueue)) }
func (l *dueQueue) Pop() any {
	last := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return last
}
