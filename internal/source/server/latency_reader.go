package server

import (
	"sort"
	"time"

	"slowpath/internal/recording"
)

// latencyReader turns new samples of LATENCY into events, one per event and second. The server keeps the longest time
// of a second, so a sample is read when its second is over.
type latencyReader struct {
	sink    recording.Sink
	subject string
	clock   *serverClock
	startNs int64

	done  map[string]int64 // by event, the second up to which samples were written
	open  map[string]bool  // events whose newest sample was not written yet
	first map[string]spike // events of the first poll, with their newest sample
}

// stale lists the events whose history is to be read, given LATENCY LATEST.
func (r *latencyReader) stale(all []latest) []string {
	if r.first == nil {
		r.done, r.open, r.first = map[string]int64{}, map[string]bool{}, map[string]spike{}
		for _, l := range all {
			r.first[l.event] = l.spike
		}
	}
	var events []string
	for _, l := range all {
		old, known := r.first[l.event]
		if from, _ := r.clock.window(l.second); known && old == l.spike && from < r.startNs {
			continue
		}
		if l.second > r.done[l.event] || r.open[l.event] {
			events = append(events, l.event)
		}
	}
	sort.Strings(events)
	return events
}

// read takes the history of an event. With last, the second that is not over yet is taken too.
func (r *latencyReader) read(at pollTime, event string, history []spike, last bool) {
	now := r.clock.second(at.sent)
	r.open[event] = false
	for _, s := range history {
		from, to := r.clock.window(s.second)
		// In the second of the start only what came after the first poll counts: a longer time.
		first, known := r.first[event]
		grown := s.second == first.second && s.millis > first.millis
		switch {
		case s.second <= r.done[event], known && from < r.startNs && !grown:
			continue
		case s.second >= now && !last:
			r.open[event] = true
			continue
		}
		r.done[event] = s.second
		r.sink.Event(recording.Event{
			TimeNs: from, DurationNs: s.millis * int64(time.Millisecond), Source: source,
			Subject: r.subject,
			Kind:    recording.KindLatency, Detail: recording.Detail(recording.LatencyDetail{
				Event:    event,
				WindowNs: to - from,
			}),
		})
	}
}
