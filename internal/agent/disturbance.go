package agent

import (
	"math"
	"sync/atomic"

	"slowpath/internal/live"
)

// disturbance is the time in which this process itself takes the CPU time of others, since its watch begins again: the
// kernel checks and compiles the programs for a second. Calls that are slow then say nothing about their server.
type disturbance struct{ from, until atomic.Int64 } // Unix seconds; 0: there was none

// calmAfter is for how many seconds after the begin of a watch it goes on: what is on the host is read once.
const calmAfter = 3

func (d *disturbance) begins(now int64) { d.from.Store(now); d.until.Store(math.MaxInt64) }

func (d *disturbance) ends(now int64) {
	if d.until.Load() == math.MaxInt64 {
		d.until.Store(now + calmAfter)
	}
}

// without are seconds in which no call counts as slow where it may have been slow by slowpath. Failed ones count.
func (d *disturbance) without(all []live.Second) []live.Second {
	from, until := d.from.Load(), d.until.Load()
	out := make([]live.Second, len(all))
	for i, one := range all {
		if from != 0 && one.Unix >= from && one.Unix <= until {
			one.Slow, one.Latencies = 0, live.Latencies{}
		}
		out[i] = one
	}
	return out
}
