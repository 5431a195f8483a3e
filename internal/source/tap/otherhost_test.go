//go:build linux

package tap

import (
	"strings"
	"testing"

	"slowpath/internal/recording"
)

// otherHostMade is what TestRealBothEndsOfOtherHost makes.
type otherHostMade struct {
	Served        int   // calls, by the server's own count
	Slow          int   // calls for which the server sleeps
	SleptNs       int64 // for so long
	Bytes, PathNs int64 // of a reply on a slow path, and what the path takes for it
}

// TestBothEndsOfOtherHost: programs of another network namespace, whose calls this kernel sees from both ends: counted
// right at each, and joined to accounts in which the way there and back is what the server's part leaves.
func TestBothEndsOfOtherHost(t *testing.T) {
	rec, made := playTape[otherHostMade](t, "other-host", nil)
	checkBothEnds(t, rec, made)
}

func checkBothEnds(t *testing.T, rec *recording.Recording, made otherHostMade) {
	t.Helper()
	for _, name := range []string{"tap.calls.server", "tap.calls.client"} {
		if v, _ := rec.Series(recording.SourceTap, recording.SubjectSelf, name).Last(); v != float64(made.Served) {
			t.Errorf("%s: %v, the server says that it served %d", name, v, made.Served)
		}
	}
	slept, far := 0, 0
	for _, c := range rec.Calls {
		// a call that only its dial made slow, as where its client lost its CPU, is in the record by one end
		ofDial := c.IntendedNs < c.StartNs
		if c.Side != "both" && !ofDial || !strings.HasPrefix(c.Client, "redis-") ||
			!strings.HasPrefix(c.Conn, "203.0.113.") {
			t.Errorf("a call of one end only: %+v", c)
		}
		parts := partsOf(t, c, rec.SegmentsOf(c.ID))
		switch {
		case c.Op == "DEBUG SLEEP":
			slept++
			if parts[recording.Server] < made.SleptNs {
				t.Errorf("%d ns of sleep took the server %d ns of a call of %d", made.SleptNs, parts[recording.Server],
					c.EndNs-c.StartNs)
			}
		case c.Op == "GET" && c.ReplyBytes >= made.Bytes:
			far++
			if parts[recording.Network] < made.PathNs {
				t.Errorf("%d bytes were on a slow path for %d ns, of a call of %d: %+v", c.ReplyBytes,
					parts[recording.Network], c.EndNs-c.StartNs, rec.SegmentsOf(c.ID))
			}
		}
	}
	if slept != made.Slow || far != 1 {
		t.Errorf("%d calls slept, %d were on the slow path", slept, far)
	}
}

// partsOf is how much of a call each actor has, of segments that fill it without a gap.
func partsOf(t *testing.T, c recording.Call, segs []recording.Segment) map[string]int64 {
	t.Helper()
	at, parts := c.IntendedNs, map[string]int64{}
	for _, s := range segs {
		if s.FromNs != at || s.ToNs <= s.FromNs {
			t.Errorf("segment %+v after %d", s, at)
		}
		at = s.ToNs
		parts[s.Actor] += s.ToNs - s.FromNs
	}
	if at != c.EndNs {
		t.Errorf("segments end at %d, the call at %d", at, c.EndNs)
	}
	return parts
}
