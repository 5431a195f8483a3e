//go:build linux

package tap

import (
	"slices"
	"testing"

	"slowpath/internal/recording"
)

// TestInternals: the functions of a server are seen at work: its cron runs ten times per second.
func TestInternals(t *testing.T) {
	rec, server := playTape[string](t, "internals", nil)
	checkInternals(t, rec, server)
}

func checkInternals(t *testing.T, rec *recording.Recording, server string) {
	t.Helper()
	if !slices.ContainsFunc(rec.Events, func(e recording.Event) bool {
		return e.Kind == recording.KindInternal && e.Subject == server && e.DurationNs > 0
	}) {
		t.Errorf("no function of the server was seen, in %d events", len(rec.Events))
	}
}
