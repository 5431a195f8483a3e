package ring

import (
	"strings"

	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// counter is a number that counts from the begin of a watch, and is to count from the begin of a window.
type counter struct{ base, last, earlier float64 }

// since is what it has counted in the window. A fall is that of another watch, which counts from zero.
func (c *counter) since(v float64) float64 {
	if v < c.last {
		c.earlier += c.last - c.base
		c.base = 0
	}
	c.last = v
	return c.earlier + v - c.base
}

// alwaysThere are counters that a watch writes as 0, too.
var alwaysThere = map[string]bool{series.TapCallsOwn.Name: true, series.TapDropped.Name: true}

// sinceBegin reports whether a sample counts from the begin of the watch. The diagnosis reads its last value as that of
// the whole watch; of other counters it reads the growth.
func sinceBegin(s recording.Sample) bool {
	switch s.Source {
	case recording.SourceTap:
		return strings.HasPrefix(s.Name, recording.ErrorRepliesPrefix) ||
			strings.HasPrefix(s.Name, recording.CallsFromPrefix) ||
			strings.HasPrefix(s.Subject, recording.ConnPrefix) || s.Subject == recording.SubjectSelf &&
			!strings.HasPrefix(s.Name, "tap.hook_") // these are of a second of its own
	case recording.SourceHost:
		return s.Subject == recording.SubjectSelf
	}
	return false
}

// counterOf is that of a sample; nil where it does not count from the begin of the watch.
func (w *window) counterOf(s recording.Sample) *counter {
	if !sinceBegin(s) {
		return nil
	}
	k := seriesKey{s.Source, s.Subject, s.Name}
	if w.counters[k] == nil {
		w.counters[k] = &counter{}
	}
	return w.counters[k]
}

// losses are the two numbers of what was not seen.
type losses struct{ count, of counter }

func (w *window) lossesSince(e *recording.Event) *losses {
	k := noteKey{e.Source, e.Subject, recording.DetailOf[recording.Unseen](*e).What}
	if w.lossesOf[k] == nil {
		w.lossesOf[k] = &losses{}
	}
	return w.lossesOf[k]
}

// restart has them count from what an event says.
func (l *losses) restart(e recording.Event) {
	u := recording.DetailOf[recording.Unseen](e)
	l.count, l.of = counter{base: u.Count, last: u.Count}, counter{base: u.Of, last: u.Of}
}

// since changes an event to what was not seen in the window.
func (l *losses) since(e *recording.Event) {
	u := recording.DetailOf[recording.Unseen](*e)
	u.Count, u.Of = l.count.since(u.Count), l.of.since(u.Of)
	e.Detail = recording.Detail(u)
}

// useSince is how a connection was used since another of its uses.
func useSince(base, u recording.ConnUse) recording.ConnUse {
	for _, n := range [...]struct{ of, to *int64 }{
		{&base.Calls, &u.Calls},
		{&base.InFlightNs, &u.InFlightNs},
		{&base.IdleNs, &u.IdleNs},
		{&base.Turns, &u.Turns},
		{&base.Handed, &u.Handed},
		{&base.WaitedNs, &u.WaitedNs},
		{&base.KeptNs, &u.KeptNs},
	} {
		*n.to = max(0, *n.to-*n.of)
	}
	if u.Prompt >= 0 && base.Prompt >= 0 {
		u.Prompt = max(0, u.Prompt-base.Prompt)
	}
	if u.Handed == 0 {
		u.WaitedMaxNs = 0
	}
	return u
}
