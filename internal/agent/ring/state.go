package ring

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"slowpath/internal/recording"
)

// Bounds of what is carried over into each file, so that it can be judged without those before it. Of what has no room
// the oldest is left out.
const (
	maxSeries     = 50_000  // latest values of samples
	maxSnapshots  = 40_000  // latest snapshots,
	maxBodies     = 4 << 20 // and the bytes of their texts
	maxUses       = 20_000  // connections whose use is known
	maxNotes      = 1_000   // blind spots, and kinds of losses
	maxMetas      = 1_000
	maxMetaBytes  = 64 << 10 // of one value
	slackOfBounds = 2        // between two files there may be twice as much
)

// state is what sources wrote once, or when it changed, and what still holds: of a watch that runs, what a file begins
// with; of a window that is saved, what it began with.
type state struct {
	metas     map[string]string
	series    map[seriesKey]value
	snapshots map[seriesKey]recording.Snapshot
	bodies    int // bytes
	uses      map[string]recording.ConnUse
	blind     map[noteKey]recording.Event
	unseen    map[noteKey]recording.Event // by what was not seen
	leftOut   int64                       // entries that had no room
}

type seriesKey struct{ source, subject, name string }

type value struct {
	timeNs int64
	value  float64
}

// noteKey is the detail of a blind spot, or what an unseen event is about.
type noteKey struct{ source, subject, text string }

func newState() *state {
	s := &state{}
	s.reset()
	return s
}

// reset forgets all: another watch begins.
func (s *state) reset() {
	*s = state{
		metas: map[string]string{}, series: map[seriesKey]value{}, snapshots: map[seriesKey]recording.Snapshot{},
		uses: map[string]recording.ConnUse{}, blind: map[noteKey]recording.Event{},
		unseen: map[noteKey]recording.Event{},
	}
}

// room reports whether there is room for a new entry.
func (s *state) room(has, most int) bool {
	if has < slackOfBounds*most {
		return true
	}
	s.leftOut++
	return false
}

func (s *state) sample(v recording.Sample) {
	k := seriesKey{v.Source, v.Subject, v.Name}
	if _, known := s.series[k]; known || s.room(len(s.series), maxSeries) {
		s.series[k] = value{v.TimeNs, v.Value}
	}
}

func (s *state) snapshot(v recording.Snapshot) {
	k := seriesKey{v.Source, v.Subject, v.Name}
	old, known := s.snapshots[k]
	if !known && !s.room(len(s.snapshots), maxSnapshots) || !s.room(s.bodies+len(v.Body)-len(old.Body), maxBodies) {
		return
	}
	s.bodies += len(v.Body) - len(old.Body)
	s.snapshots[k] = v
}

func (s *state) connUse(client string, u recording.ConnUse) {
	if _, known := s.uses[client]; known || s.room(len(s.uses), maxUses) {
		s.uses[client] = u
	}
}

func (s *state) meta(key, text string) {
	if _, known := s.metas[key]; (known || s.room(len(s.metas), maxMetas)) && len(text) <= maxMetaBytes {
		s.metas[key] = text
	}
}

func (s *state) event(e recording.Event) {
	switch e.Kind {
	case recording.KindBlindSpot:
		k := noteKey{e.Source, e.Subject, e.Detail}
		if _, known := s.blind[k]; !known && s.room(len(s.blind), maxNotes) {
			s.blind[k] = e
		}
	case recording.KindUnseen:
		k := noteKey{e.Source, e.Subject, recording.DetailOf[recording.Unseen](e).What}
		if _, known := s.unseen[k]; known || s.room(len(s.unseen), maxNotes) {
			s.unseen[k] = e
		}
	case recording.KindClose:
		if client := clientOf(e.Detail); e.Source == recording.SourceTap && client != "" {
			s.forget(client)
		}
	}
}

// clientOf is the client's address in the detail of an event.
func clientOf(detail string) string {
	_, rest, _ := strings.Cut(detail, `"client":"`)
	client, _, _ := strings.Cut(rest, `"`)
	return client
}

// forget drops what is known of a connection, which has ended. Its chains of calls are few, and go with the oldest.
func (s *state) forget(client string) {
	delete(s.uses, client)
	for _, name := range [...]string{
		recording.SnapshotEnds, recording.SnapshotServed, recording.SnapshotLeftOut, recording.SnapshotObserver,
	} {
		k := seriesKey{recording.SourceTap, recording.ConnPrefix + client, name}
		if old, known := s.snapshots[k]; known {
			s.bodies -= len(old.Body)
			delete(s.snapshots, k)
		}
	}
}

// shrink drops the oldest entries of what is above its bound.
func (s *state) shrink() {
	s.leftOut += dropOldest(s.series, maxSeries, func(v value) int64 { return v.timeNs })
	s.leftOut += dropOldest(s.snapshots, maxSnapshots, func(v recording.Snapshot) int64 { return v.TimeNs })
	s.leftOut += dropOldest(s.uses, maxUses, func(v recording.ConnUse) int64 { return v.TimeNs })
	s.leftOut += dropOldest(s.blind, maxNotes, func(v recording.Event) int64 { return v.TimeNs })
	s.leftOut += dropOldest(s.unseen, maxNotes, func(v recording.Event) int64 { return v.TimeNs })
	if s.bodies = bytesOf(s.snapshots); s.bodies <= maxBodies {
		return
	}
	byLength := slices.SortedFunc(maps.Keys(s.snapshots), func(a, b seriesKey) int {
		return cmp.Compare(len(s.snapshots[b].Body), len(s.snapshots[a].Body))
	})
	for _, k := range byLength { // the longest first: they are written again often (CLIENT LIST)
		if s.bodies <= maxBodies {
			break
		}
		s.bodies -= len(s.snapshots[k].Body)
		s.leftOut++
		delete(s.snapshots, k)
	}
}

func bytesOf(snapshots map[seriesKey]recording.Snapshot) (n int) {
	for _, v := range snapshots {
		n += len(v.Body)
	}
	return n
}

// dropOldest drops the oldest entries above a bound, and some more, so that it is not done again for each new one.
func dropOldest[K comparable, V any](all map[K]V, most int, timeNs func(V) int64) (dropped int64) {
	if len(all) <= most {
		return 0
	}
	times := make([]int64, 0, len(all))
	for _, v := range all {
		times = append(times, timeNs(v))
	}
	slices.Sort(times)
	until := times[len(times)-most*9/10]
	for k, v := range all {
		if timeNs(v) < until {
			delete(all, k)
			dropped++
		}
	}
	return dropped
}

// write puts all of it into a block.
func (s *state) write(e *encoder) {
	for k, v := range s.metas {
		e.meta(k, v)
	}
	for k, v := range s.series {
		e.sample(recording.Sample{
			TimeNs: v.timeNs, Source: k.source, Subject: k.subject, Name: k.name, Value: v.value,
		})
	}
	for _, v := range s.snapshots {
		e.snapshot(v)
	}
	for client, u := range s.uses {
		e.connUse(client, u)
	}
	for _, v := range s.blind {
		e.event(v)
	}
	for _, v := range s.unseen {
		e.event(v)
	}
}
