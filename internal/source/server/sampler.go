package server

import (
	"strings"

	"slowpath/internal/recording"
)

// pollTime is when the commands of a poll were sent, and when the last reply was received. The server answered between
// the two.
type pollTime struct{ sent, done int64 }

// sampler records numbers when they change.
//
// Where a number changes after it was left out, its old value is written at the previous poll first, so that the step
// is as narrow as the two polls. That earlier point has the time of the send: what ran after the INFO in the same
// event-loop iteration, before the reply went out, belongs to the step.
type sampler struct {
	sink    recording.Sink
	subject string
	last    map[string]float64 // nil before the first poll
	written map[string]int64   // time of the last sample of each name
	names   map[string]string  // as they are kept: those of a reply would keep all of its text
	prev    pollTime
	omitted bool // some names had no room
}

// maxNames is how many names of numbers are kept: an INFO has maxInfoFields of them, and those of a server may change.
const maxNames = 2 * maxInfoFields

// poll writes the fields of a poll: all of them at the first and at the last one, else those that changed.
func (s *sampler) poll(at pollTime, fields []field, all bool) {
	first := s.last == nil
	if first {
		s.last, s.written, s.names = map[string]float64{}, map[string]int64{}, map[string]string{}
	}
	present := make(map[string]bool, len(fields))
	for _, f := range fields {
		f.name = s.own(f.name)
		present[f.name] = true
		old, known := s.last[f.name]
		switch {
		case first, known && old == f.value && all:
			s.write(at.done, f)
		case known && old == f.value:
		case !known && len(s.last) >= maxNames:
			s.omitted = true
		case known:
			s.writeBefore(field{f.name, old})
			s.write(at.done, f)
		default:
			if startsAtZero(f.name) {
				s.writeBefore(field{f.name, 0})
			}
			s.write(at.done, f)
		}
	}
	for name, old := range s.last {
		// CONFIG RESETSTAT and restarts make these vanish, until they are counted again from zero.
		if !present[name] && old != 0 && startsAtZero(name) {
			s.writeBefore(field{name, old})
			s.write(at.done, field{name, 0})
		}
	}
	s.prev = at
}

// own is a name in memory of its own.
func (s *sampler) own(name string) string {
	kept, known := s.names[name]
	if !known {
		kept = strings.Clone(name)
		if len(s.names) < maxNames {
			s.names[kept] = kept
		}
	}
	return kept
}

// write writes a sample.
func (s *sampler) write(timeNs int64, f field) {
	s.last[f.name], s.written[f.name] = f.value, timeNs
	s.sink.Sample(recording.Sample{TimeNs: timeNs, Source: source, Subject: s.subject, Name: f.name, Value: f.value})
}

// writeBefore writes the value that a name had at the previous poll, unless it was written then.
func (s *sampler) writeBefore(f field) {
	if at, ok := s.written[f.name]; !ok || at < s.prev.sent {
		s.write(s.prev.sent, f)
	}
}

// startsAtZero recognises the counters that INFO leaves out while they are zero.
func startsAtZero(name string) bool {
	if strings.HasPrefix(name, "cmdstat_") || strings.HasPrefix(name, "errorstat_") {
		return true
	}
	rest, ok := strings.CutPrefix(name, "db")
	return ok && rest != "" && rest[0] >= '0' && rest[0] <= '9'
}
