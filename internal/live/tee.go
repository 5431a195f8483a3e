package live

import "slowpath/internal/recording"

// Tee gives each row to several sinks.
func Tee(sinks ...recording.ProfileSink) recording.ProfileSink { return tee(sinks) }

type tee []recording.ProfileSink

func (t tee) Call(c recording.Call, segs ...recording.Segment) {
	for _, s := range t {
		s.Call(c, segs...)
	}
}

func (t tee) Histogram(h recording.Histogram) {
	for _, s := range t {
		s.Histogram(h)
	}
}

func (t tee) Sample(row recording.Sample) {
	for _, s := range t {
		s.Sample(row)
	}
}

func (t tee) ConnUse(client string, u recording.ConnUse) {
	for _, s := range t {
		s.ConnUse(client, u)
	}
}

func (t tee) Event(e recording.Event) {
	for _, s := range t {
		s.Event(e)
	}
}

func (t tee) Snapshot(row recording.Snapshot) {
	for _, s := range t {
		s.Snapshot(row)
	}
}

func (t tee) Profile(p recording.Profile) {
	for _, s := range t {
		s.Profile(p)
	}
}

func (t tee) SetMeta(key, value string) {
	for _, s := range t {
		s.SetMeta(key, value)
	}
}
