package probe

import (
	"testing"
	"testing/synctest"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
	"slowpath/internal/wire/wiretest"
)

// What was missed is recorded with its wait where the server held it up, and only counted where slowpath did. Nothing
// but the last few calls is left to be sent.
func TestLeaveOut(t *testing.T) {
	const ms = int64(time.Millisecond)
	const over = 100 // slots of 10 ms
	for name, tt := range map[string]struct {
		late     [2]int64 // ms after the start, in which slowpath was late
		free     int64    // ms after the start
		recorded [2]int   // at least, at most
	}{
		"the server stalled":           {[2]int64{}, 1000, [2]int{over - maxMissed, over - maxMissed}},
		"slowpath was stopped":         {[2]int64{-50, 999}, 1000, [2]int{0, 1}},
		"stopped, without a call":      {[2]int64{}, -1, [2]int{0, 0}},
		"stopped, then it stalled":     {[2]int64{-50, 100}, 1000, [2]int{over - maxMissed, over - maxMissed}},
		"it stalled, then was stopped": {[2]int64{400, 1000}, 1000, [2]int{0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := clock.New()
				start := c.Now() - over*10*ms
				missed := map[string]int64{}
				sink := &locked{rec: recording.New()}
				p := &prober{
					Options: Options{Clock: c, Sink: sink, OnMissed: func(why string, n int64) { missed[why] += n }},
					hists:   newHistograms(sink, ""),
				}
				own := delays{{
					Actor: recording.Client, State: recording.RunQueue, FromNs: start + tt.late[0]*ms,
					ToNs: start + tt.late[1]*ms,
				}}
				sched, free := newSlots(start, 100, nil), start+tt.free*ms
				p.leaveOut(sched, free, own)
				if left := sched.behind(c.Now()); left != maxMissed {
					t.Errorf("%d calls are left to be sent", left)
				}
				n := len(sink.rec.Calls)
				if n < tt.recorded[0] || n > tt.recorded[1] || int64(n) != missed[MissedWaiting] ||
					missed[MissedOwn]+missed[MissedWaiting] != sched.k {
					t.Errorf("%d calls recorded, want %v; missed %v of %d", n, tt.recorded, missed, sched.k)
				}
				for _, call := range sink.rec.Calls {
					if call.EndNs != free || call.StartNs != free || call.RequestBytes != 0 {
						t.Errorf("%+v, free at %d", call, free)
					}
				}
			})
		})
	}
}

// A server that comes back gets a few of the calls that were due meanwhile, not all at once.
func TestFewAfterAStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := wiretest.New(t, quick)
		missed := map[string]int64{}
		o := Options{Rate: 100, OnMissed: func(why string, n int64) { missed[why] += n }}
		var from, to int64
		rec := inMemory(t, s, o, func(p *probing) {
			p.answered(5, 0)
			from, to = p.freeze(s, 500*time.Millisecond)
			p.answered(5, to)
		})
		sent, left := int64(0), int64(0)
		for _, c := range rec.Calls {
			switch {
			case c.IntendedNs < from || c.IntendedNs >= to:
			case c.RequestBytes > 0:
				sent++
			default:
				left++
			}
		}
		// the one that was under way, and the last ones
		if sent < maxMissed || sent > maxMissed+2 || missed[MissedWaiting] != left || left < 50-maxMissed-3 {
			t.Errorf("%d sent, %d not; missed %v", sent, left, missed)
		}
	})
}
