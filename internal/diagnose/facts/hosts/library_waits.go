package hosts

import (
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
)

// LibraryWaitsOf is what the calls of a Go program waited for in the pool of its client library; ok is false where that
// is not known of most of its calls.
func LibraryWaitsOf(c *facts.Case, pid int) (w recording.LibraryWaits, ok bool) {
	var first recording.LibraryWaits
	var firstNs int64
	for _, s := range c.Rec.Snapshots {
		if s.Name != recording.SnapshotLibrary || s.Subject != processSubject(pid) {
			continue
		}
		w = recording.LibraryWaitsOf(s.Body)
		if firstNs == 0 {
			first, firstNs = w, s.TimeNs
		}
	}
	if firstNs-first.Ns < c.StartNs && w.Ns > first.Ns { // it was counted before the recording began
		w = w.Since(first)
	}
	return w, w.Calls > 0 && w.Calls >= w.Others && w.Ns > 0
}
