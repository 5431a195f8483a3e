package account

import (
	"testing"

	"pgregory.net/rapid"
)

// Whatever is put on a timeline, its segments stay a partition, and what was not to be replaced stays as it is.
func TestTimelineStaysAPartition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tl := newTimeline(100, 200)
		instant := rapid.Int64Range(80, 220)
		tl.put(Segment{Client, RunQueue, 150, 160, "", -1}, isOpen)
		for range rapid.IntRange(1, 8).Draw(t, "operations") {
			from, to := instant.Draw(t, "from"), instant.Draw(t, "to")
			s := Segment{
				Server, rapid.SampledFrom([]string{Busy, Throttled, PoolWait}).Draw(t, "state"), from, to, "",
				-1,
			}
			switch rapid.IntRange(0, 4).Draw(t, "operation") {
			case 0:
				tl.put(s, waitsForServer)
			case 1:
				tl.putFirst(to-from, s, isOpen)
			case 2:
				tl.putLast(to-from, s, isOpen)
			case 3:
				tl.overlay(disjoint([]Segment{s, {Server, Exec, to, to + 30, "", 1}}), exactly)
			case 4:
				tl.attribute(Suspect{FromNs: from, ToNs: to}, 2, 20, waitsForServer)
			}
			at, queued := int64(100), int64(0)
			for _, g := range tl.segs {
				if g.FromNs != at || g.ToNs <= g.FromNs {
					t.Fatalf("segment %+v does not begin at %d: %+v", g, at, tl.segs)
				}
				at = g.ToNs
				if g.Actor == Client {
					queued += g.Ns()
				}
			}
			if at != 200 || queued != 10 {
				t.Fatalf("ends at %d, %d ns in the run queue: %+v", at, queued, tl.segs)
			}
		}
	})
}
