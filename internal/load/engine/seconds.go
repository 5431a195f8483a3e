//go:build linux

package engine

import "time"

// maxQueuedTallies is how many tallies may wait for OnTally; a worker that finds no room waits.
const maxQueuedTallies = 256

// passTallies calls OnStart and OnTally in a goroutine of its own: adding up histograms takes a millisecond, in which a
// worker would send late.
func (r *run) passTallies() (passed chan struct{}) {
	r.tallies = make(chan *Tally, maxQueuedTallies)
	passed = make(chan struct{})
	go func() {
		defer close(passed)
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
	return passed
}

// makeTallies makes a tally and a spare one before the load begins: it takes a millisecond.
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

// closeSecond passes on the tally and begins the current second.
func (w *worker) closeSecond() {
	second := int((w.now - w.r.start) / int64(time.Second))
	w.passTally()
	w.tally.Second = second
	w.second = w.r.start + int64(second+1)*int64(time.Second)
}

// passTally passes on the tally and takes an empty one.
func (w *worker) passTally() {
	t := w.tally
	t.Worker, t.InFlight, t.EndNs = w.index, w.inFlight, w.now-w.r.start
	if t.Last {
		t.EndNs = w.ended - w.r.start
	}
	for _, c := range w.conns {
		if !c.dead && !c.unconnected {
			t.Connected++
		}
	}
	if w.routing != nil {
		w.countPerNode()
	}
	if w.index == 0 {
		w.r.subscribers.addTo(t)
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
