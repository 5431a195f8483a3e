package host

import (
	"sync"

	"slowpath/internal/recording"
)

const node = "127.0.0.1:22000"

// memory is a sink that keeps everything.
type memory struct {
	mu        sync.Mutex
	samples   []recording.Sample
	events    []recording.Event
	snapshots []recording.Snapshot
}

func (m *memory) Call(recording.Call, ...recording.Segment) {}
func (m *memory) Histogram(recording.Histogram)             {}
func (m *memory) SetMeta(string, string)                    {}
func (m *memory) ConnUse(string, recording.ConnUse)         {}

func (m *memory) Sample(s recording.Sample) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.samples = append(m.samples, s)
}

func (m *memory) Event(e recording.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.events = append(m.events, e)
}

func (m *memory) Snapshot(s recording.Snapshot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.snapshots = append(m.snapshots, s)
}

// kind lists the events of one kind.
func (m *memory) kind(kind string) []recording.Event {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []recording.Event
	for _, e := range m.events {
		if e.Kind == kind {
			list = append(list, e)
		}
	}
	return list
}

// total is the time of events of one kind: durations times shares.
func (m *memory) total(kind string) (ns int64) {
	for _, e := range m.kind(kind) {
		ns += int64(float64(e.DurationNs) * recording.DetailOf[recording.ThreadDetail](e).Share)
	}
	return ns
}

// value is the newest sample of a name.
func (m *memory) value(subject, name string) (float64, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := len(m.samples) - 1; i >= 0; i-- {
		if s := m.samples[i]; s.Subject == subject && s.Name == name {
			return s.Value, true
		}
	}
	return 0, false
}
