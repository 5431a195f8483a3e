package engine

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// DialTally is the time of opening connections, by phase. Histograms have ns with 2 significant digits, of successful
// attempts; one is nil where no connection had that phase.
type DialTally struct {
	Done, Failed int64
	// segments retransmitted before a connection was open: mostly SYNs that a full backlog dropped
	SynRetrans                          int64
	DNS, Connect, TLS, Handshake, Whole *hdrhistogram.Histogram
}

// phase records one duration.
func phase(h **hdrhistogram.Histogram, ns int64) {
	if ns <= 0 {
		return
	}
	if *h == nil {
		*h = newPhase()
	}
	_ = (*h).RecordValue(min(ns, maxLatency)) // in range
}

func newPhase() *hdrhistogram.Histogram { return hdrhistogram.New(1, maxLatency, 2) }

func (d *DialTally) phases() [5]**hdrhistogram.Histogram {
	return [5]**hdrhistogram.Histogram{&d.DNS, &d.Connect, &d.TLS, &d.Handshake, &d.Whole}
}

func (d *DialTally) add(dns, connect, tls, handshake, whole time.Duration) {
	for i, t := range [5]time.Duration{dns, connect, tls, handshake, whole} {
		phase(d.phases()[i], int64(t))
	}
	d.Done++
}

// merge adds another tally.
func (d *DialTally) merge(o *DialTally) {
	d.Done += o.Done
	d.Failed += o.Failed
	d.SynRetrans += o.SynRetrans
	for i, from := range o.phases() {
		mergeInto(d.phases()[i], *from)
	}
}

// mergeInto adds a histogram to one that may be nil.
func mergeInto(to **hdrhistogram.Histogram, from *hdrhistogram.Histogram) {
	if from == nil || from.TotalCount() == 0 {
		return
	}
	if *to == nil {
		*to = hdrhistogram.New(from.LowestTrackableValue(), from.HighestTrackableValue(),
			int(from.SignificantFigures()))
	}
	(*to).Merge(from)
}

// reset empties it and keeps its memory.
func (d *DialTally) reset() {
	for _, h := range d.phases() {
		if *h != nil {
			(*h).Reset()
		}
	}
	d.Done, d.Failed, d.SynRetrans = 0, 0, 0
}
