package live

import (
	"slices"
	"strings"

	"slowpath/internal/recording"
)

// room reports whether another row may be taken: where trimming does not help, rows are dropped. w.mu is held.
func (w *Window) room() bool {
	if w.bytes < 2*windowBytes && len(w.calls) < 2*windowCalls {
		return true
	}
	if w.took(0); w.bytes < 2*windowBytes && len(w.calls) < 2*windowCalls {
		return true
	}
	w.dropped++
	return false
}

// took counts a row, and takes old ones out now and then, sooner where there are many. w.mu is held.
func (w *Window) took(bytes int) {
	w.bytes += int64(bytes)
	now, every := w.clock.Now(), trimEvery
	if w.full() {
		every = trimFull
	}
	if now-w.trimmedNs < int64(every) {
		return
	}
	w.trimmedNs = now
	w.trim(now, now-int64(w.span))
	for span := now - w.fromNs; w.full() && span > int64(leastSpan); {
		span = max(int64(leastSpan), span*3/4)
		w.trim(now, now-span)
	}
}

func (w *Window) full() bool { return w.bytes > windowBytes || len(w.calls) > windowCalls }

// trim takes out rows before a time. Rows come about in the order of their times. w.mu is held.
func (w *Window) trim(now, fromNs int64) {
	if fromNs <= w.fromNs {
		return
	}
	w.fromNs = fromNs
	w.calls = after(w.calls, func(c callRow) bool { return c.call.EndNs >= fromNs })
	w.histograms = after(w.histograms, func(h recording.Histogram) bool { return h.Second >= fromNs/1e9 })
	w.events = after(w.events, func(e recording.Event) bool { return e.TimeNs+e.DurationNs >= fromNs })
	w.profiles = after(w.profiles, func(p recording.Profile) bool { return p.TimeNs >= fromNs })
	w.snapshots = newestAndAfter(w.snapshots, fromNs)
	for k, points := range w.samples {
		kept := from(points, fromNs, func(p recording.Point) int64 { return p.TimeNs })
		if passing(k.Subject) && kept[len(kept)-1].TimeNs < now-int64(idleFor) {
			delete(w.samples, k)
		} else {
			w.samples[k] = kept
		}
	}
	for client, uses := range w.uses {
		kept := from(uses, fromNs, func(u recording.ConnUse) int64 { return u.TimeNs })
		if kept[len(kept)-1].TimeNs < now-int64(idleFor) {
			delete(w.uses, client)
		} else {
			w.uses[client] = kept
		}
	}
	w.bytes = w.size()
}

// passing reports whether a subject comes and goes: a process or a connection.
func passing(subject string) bool {
	return strings.HasPrefix(subject, recording.ProcessPrefix) || strings.HasPrefix(subject, recording.ConnPrefix)
}

// after keeps the rows from the first one on that is wanted, in memory of their own.
func after[T any](rows []T, wanted func(T) bool) []T {
	i := slices.IndexFunc(rows, wanted)
	if i < 0 {
		return nil
	}
	if i == 0 {
		return rows
	}
	return slices.Clone(rows[i:])
}

// from keeps the rows from a time on, and the last one before it, whose value still holds then.
func from[T any](rows []T, fromNs int64, timeNs func(T) int64) []T {
	i := 0
	for i+1 < len(rows) && timeNs(rows[i+1]) <= fromNs {
		i++
	}
	if i == 0 {
		return rows
	}
	return slices.Clone(rows[i:])
}

// newestAndAfter keeps snapshots from a time on, and of those before it the last one of each name.
func newestAndAfter(all []recording.Snapshot, fromNs int64) []recording.Snapshot {
	last := map[[3]string]int{}
	for i, s := range all {
		last[[3]string{s.Source, s.Subject, s.Name}] = i
	}
	var out []recording.Snapshot
	for i, s := range all {
		if s.TimeNs >= fromNs || last[[3]string{s.Source, s.Subject, s.Name}] == i {
			out = append(out, s)
		}
	}
	return out
}

func callBytes(c callRow) int { return 2*rowBytes + len(c.segments)*segmentBytes }

// size is about how many bytes all rows take. w.mu is held.
func (w *Window) size() (n int64) {
	for _, c := range w.calls {
		n += int64(callBytes(c))
	}
	for _, h := range w.histograms {
		n += rowBytes + int64(len(h.HDR))
	}
	for _, e := range w.events {
		n += rowBytes + int64(len(e.Detail))
	}
	for _, s := range w.snapshots {
		n += rowBytes + int64(len(s.Body))
	}
	for _, p := range w.profiles {
		n += rowBytes + int64(len(p.Pprof))
	}
	for _, points := range w.samples {
		n += rowBytes + int64(len(points))*pointBytes
	}
	for _, uses := range w.uses {
		n += rowBytes + int64(len(uses))*useBytes
	}
	return n
}
