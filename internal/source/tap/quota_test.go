//go:build linux

package tap

import (
	"strings"
	"testing"

	"slowpath/internal/recording"
)

// throttledMade is which end's process ran into a quota, and how that is named.
type throttledMade struct{ Side, Quota string }

// TestThrottledByCgroup: a wait for the quota names the cgroup and its quota, of servers and of clients, in the event
// and in the calls.
func TestThrottledByCgroup(t *testing.T) {
	for _, side := range []string{recording.Server, recording.Client} {
		t.Run(side, func(t *testing.T) {
			rec, made := playTape[throttledMade](t, "throttled-"+side, nil)
			checkThrottled(t, rec, made)
		})
	}
}

func checkThrottled(t *testing.T, rec *recording.Recording, made throttledMade) {
	t.Helper()
	events, named := 0, 0
	for _, e := range rec.Events {
		if e.Kind != recording.KindThrottled {
			continue
		}
		if d := recording.DetailOf[recording.ThreadDetail](e); d.Holder() != made.Quota ||
			(made.Side == recording.Client) != strings.HasPrefix(e.Subject, recording.ProcessPrefix) {
			t.Errorf("event of %s: %+v, want %s", e.Subject, d, made.Quota)
		}
		events++
	}
	for _, c := range rec.Calls {
		for _, s := range rec.SegmentsOf(c.ID) {
			if s.State == recording.Throttled && s.Culprit == made.Quota && s.Actor == made.Side {
				named++
			}
		}
	}
	if events == 0 || named == 0 {
		t.Errorf("%d events, %d segments of calls name %s", events, named, made.Quota)
	}
}
