package ring

import (
	"maps"
	"slices"
	"strings"
	"time"

	"slowpath/internal/recording"
)

// Cut is what is saved of a ring: the time [From, To).
type Cut struct {
	From, To time.Time
	// Before is how long a time before From is what it is compared with: see recording.Recording.Earlier.
	Before time.Duration
	// Nodes, if there are any, are the only ones that are saved. What is of no single node is saved as well.
	Nodes []string
}

// shortlyBefore reports whether a time is in that before the window of which rows are kept.
func (w *window) shortlyBefore(ns int64) bool {
	return ns >= w.earlierNs && ns < w.fromNs && !w.carrying
}

// keptBefore leaves out what is of single connections: it is much, and changes with each call.
func keptBefore(subject string) bool { return !strings.HasPrefix(subject, recording.ConnPrefix) }

// notBefore are kinds of events of which nothing is kept of the time before a window: those of single connections, and
// those that say what was not seen.
var notBefore = [...]string{
	recording.KindOpen, recording.KindHandshake, recording.KindClose, recording.KindBlindSpot, recording.KindUnseen,
}

func beforeSample(s recording.Sample) recording.Sample {
	s.Source = recording.Before(s.Source)
	return s
}

func beforeSnapshot(s recording.Snapshot) recording.Snapshot {
	s.Source = recording.Before(s.Source)
	return s
}

// holdEarlier writes what held when the time before the window began, so that a change in it is one.
func (w *window) holdEarlier() {
	if w.earlierHeld {
		return
	}
	w.earlierHeld = true
	for k, v := range w.before.series {
		s := recording.Sample{TimeNs: w.earlierNs, Source: k.source, Subject: k.subject, Name: k.name, Value: v.value}
		if keptBefore(s.Subject) && !sinceBegin(s) {
			w.out.Sample(beforeSample(s))
		}
	}
	for _, v := range w.before.snapshots {
		if keptBefore(v.Subject) {
			v.TimeNs = w.earlierNs
			w.out.Snapshot(beforeSnapshot(v))
		}
	}
}

// leaveOutOthers has the metas name the nodes that are saved.
func (w *window) leaveOutOthers() {
	if len(w.others) == 0 {
		return
	}
	rec := recording.Recording{Meta: w.metas}
	kept := slices.DeleteFunc(rec.Nodes(), func(n string) bool { return w.others[n] })
	if len(kept) == 0 {
		return
	}
	servers := rec.Servers()
	maps.DeleteFunc(servers, func(n string, _ recording.NodeServer) bool { return w.others[n] })
	maps.Copy(w.metas, recording.NodeMetas(kept, servers))
}
