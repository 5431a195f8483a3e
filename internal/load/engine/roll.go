//go:build linux

package engine

import "time"

// talliesOnTheWay bounds how many seconds of how many workers may wait for OnTally; a worker that finds no room waits.
const talliesOnTheWay = 256

// tellTallies calls OnStart, and OnTally away from the workers: adding up histograms takes a millisecond, in which
// calls would be late.
func (r *run) tellTallies() (told chan struct{}) {
	r.tallies = make(chan *Tally, talliesOnTheWay)
	told = make(chan struct{})
	go func() {
		defer close(told)
		if r.OnStart != nil {
			r.OnStart(r.start)
		}
		for t := range r.tallies {
			if r.OnTally != nil {
				r.OnTally(t)
			}
			w := r.workers[t.Worker]
			t.Reset()
			select {
			case w.spare <- t:
			default:
			}
		}
	}()
	return told
}

// makeTallies makes the one to count in and a spare one, before the load begins: it takes a millisecond.
func (w *worker) makeTallies() {
	w.spare = make(chan *Tally, 2)
	w.tally = w.r.NewTally()
	w.spare <- w.r.NewTally()
}

// beginTally starts the first second.
func (w *worker) beginTally() {
	w.meter = openMeter()
	w.now = w.r.Clock.Now()
	w.second = w.r.start + int64(time.Second)
}

// roll passes on what was counted since the last time, and begins the second that is now.
func (w *worker) roll() {
	second := int((w.now - w.r.start) / int64(time.Second))
	w.handOver()
	w.tally.Second = second
	w.second = w.r.start + int64(second+1)*int64(time.Second)
}

// handOver passes on what was counted and takes an empty tally.
func (w *worker) handOver() {
	t := w.tally
	t.Worker, t.InFlight, t.EndNs = w.index, w.inFlight, w.now-w.r.start
	if t.Last {
		t.EndNs = w.ended - w.r.start
	}
	for _, c := range w.conns {
		if !c.dead && !c.away {
			t.Connected++
		}
	}
	if w.routing != nil {
		w.rollRouted()
	}
	if w.index == 0 {
		w.r.subscribers.tell(t)
	}
	used := w.meter.since()
	t.CPUNs, t.RunQueueNs = used.cpuNs, used.runQueueNs
	select {
	case w.tally = <-w.spare:
	default:
		w.tally = w.r.NewTally()
	}
	w.r.tallies <- t
}
