//go:build linux

package tap

import (
	"fmt"
	"time"
)

// maxWaitsPerSecond is how many waits of clients' threads for a CPU are recorded in a second before the shorter ones
// are left out. Where a hundred threads run on a few CPUs there are thousands for each CPU, and recording them all
// takes a CPU itself. The segments of a slow call still say what it waited for.
const maxWaitsPerSecond = 2000

// waitLimit decides which waits are long enough to be recorded.
type waitLimit struct {
	second  int64 // since the epoch
	written int   // in it, since shortest was raised
	// shortest is the least wait that is recorded now, longest the most that shortest ever was; ns.
	shortest, longest int64
}

// admits takes a wait that began at a time of the recording, ns since the epoch.
func (l *waitLimit) admits(at, ns int64) bool {
	if second := at / int64(time.Second); second > l.second { // events of several CPUs come a little out of order
		if l.written < maxWaitsPerSecond/4 {
			l.shortest /= 2
		}
		l.second, l.written = second, 0
	}
	if ns < l.shortest {
		return false
	}
	if l.written++; l.written >= maxWaitsPerSecond {
		l.shortest, l.written = max(2*l.shortest, 2*int64(DefaultMinWork)), 0
		l.longest = max(l.longest, l.shortest)
	}
	return true
}

// report says what was left out, at the end of a watch.
func (l *waitLimit) report(o Options) {
	if l.longest == 0 {
		return
	}
	o.blind(o.Nodes[0].Address,
		fmt.Sprintf("waits for a CPU of clients' threads below %v, one by one", time.Duration(l.longest)),
		fmt.Sprintf("there were more than %d in a second", maxWaitsPerSecond),
		"watch fewer processes: --pid or --comm")
}
