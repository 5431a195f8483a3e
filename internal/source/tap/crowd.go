//go:build linux

package tap

import (
	"fmt"
	"time"

	"slowpath/internal/recording"
)

// crowdedPerSecond is how many waits of clients' threads for a CPU are written down in a second before the shorter ones
// are left out. Where a hundred threads run on a few CPUs there are thousands for each CPU, and writing them all down
// takes a CPU itself. What a slow call waited for is told in its segments all the same.
const crowdedPerSecond = 2000

// crowd decides which waits are long enough to be written down.
type crowd struct {
	second  int64 // since the epoch
	written int   // in it, since shortest was raised
	// shortest and longest are what is written down now, at least, and the most that it was, ns.
	shortest, longest int64
}

// admits takes a wait that began at a time of the recording, ns since the epoch.
func (c *crowd) admits(at, ns int64) bool {
	if second := at / int64(time.Second); second > c.second { // reports of several CPUs come a little out of order
		if c.written < crowdedPerSecond/4 {
			c.shortest /= 2
		}
		c.second, c.written = second, 0
	}
	if ns < c.shortest {
		return false
	}
	if c.written++; c.written >= crowdedPerSecond {
		c.shortest, c.written = max(2*c.shortest, 2*int64(DefaultMinWork)), 0
		c.longest = max(c.longest, c.shortest)
	}
	return true
}

// tell says what was left out, at the end of a watch.
func (c *crowd) tell(o Options) {
	if c.longest == 0 {
		return
	}
	o.Sink.Event(recording.Event{
		TimeNs: o.Clock.Now(), Source: recording.SourceTap, Subject: o.Nodes[0].Address,
		Kind: recording.KindBlindSpot, Detail: recording.Detail(recording.BlindSpot{
			What:   fmt.Sprintf("waits for a CPU of clients' threads below %v, one by one", time.Duration(c.longest)),
			Why:    fmt.Sprintf("there were more than %d in a second", crowdedPerSecond),
			Enable: "watch fewer processes: --pid or --comm",
		}),
	})
}
