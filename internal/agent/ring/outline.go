package ring

import (
	"strconv"

	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// The tap counts calls once a second, at times of its own, and reports slow ones one by one. A window begins and ends
// with such a count, so that the calls that it has are those that were counted.

// farNs is how far a count may be from the begin or the end of a window: the tap is late on a busy host.
const farNs = int64(2e9)

// isCount reports whether a sample is one that the tap writes at each count.
func isCount(s recording.Sample) bool {
	return s.Source == recording.SourceTap && s.Subject == recording.SubjectSelf && s.Name == series.TapDropped.Name
}

// outline is when the tap counted, and what ended and began meanwhile. It takes rows before a window does.
type outline struct {
	nothing
	fromNs, toNs int64
	startNs      int64 // when the watch began that goes on at the begin of the window; 0: not known
	before       bool  // the tap had counted before the window, in the same watch
	firstNs      int64 // its first count in the window; 0: none
	lastNs       int64 // its last one
	ended        bool  // the watch has ended after that
	carrying     bool
}

// Sample implements recording.Sink.
func (o *outline) Sample(s recording.Sample) {
	switch {
	case !isCount(s):
	case o.carrying || s.TimeNs < o.fromNs:
		o.before = o.before || o.firstNs == 0
	case s.TimeNs < o.toNs:
		if o.firstNs == 0 {
			o.firstNs = s.TimeNs
		}
		o.lastNs, o.ended = s.TimeNs, false
	}
}

// SetMeta implements recording.Sink.
func (o *outline) SetMeta(key, value string) {
	switch key {
	case recording.MetaEnd:
		o.ended = o.ended || !o.carrying
	case recording.MetaStart:
		if ns, err := strconv.ParseInt(value, 10, 64); err == nil && o.firstNs == 0 {
			o.startNs = ns
		}
	}
}

func (o *outline) beginWatch() {
	if o.firstNs == 0 {
		o.before, o.startNs = false, 0
	}
}

// align moves the begin and the end of a window to counts that are near.
func (o outline) align(fromNs, toNs int64) (int64, int64) {
	if o.before && o.startNs < fromNs && o.firstNs > 0 && o.firstNs-fromNs < farNs && o.firstNs < o.lastNs {
		fromNs = o.firstNs + 1
	}
	if !o.ended && o.lastNs > fromNs && toNs-o.lastNs < farNs {
		toNs = o.lastNs + 1
	}
	return fromNs, toNs
}

// nothing takes rows and does nothing with them.
type nothing struct{}

func (nothing) Call(recording.Call, ...recording.Segment) {}
func (nothing) Histogram(recording.Histogram)             {}
func (nothing) ConnUse(string, recording.ConnUse)         {}
func (nothing) Event(recording.Event)                     {}
func (nothing) Snapshot(recording.Snapshot)               {}
func (nothing) Profile(recording.Profile)                 {}
func (nothing) lostRows(int64)                            {}
