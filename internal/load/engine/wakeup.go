//go:build linux

package engine

// wakeUpDelay is how late a worker wakes up for the next call that is due. For a shorter time it spins instead: a sleep
// would end too late and save little CPU time.
type wakeUpDelay struct {
	due    int64 // when the current sleep should end for a call that is due; 0: for none
	median int64 // of how late sleeps ended, about
}

const (
	// medianStep is how far one sleep moves the median, in ns: from 0 to 20 µs takes 100 sleeps.
	medianStep = 200
	// maxWakeUpDelay is more than a wake-up takes, in ns: others use the CPU, and spinning does not help.
	maxWakeUpDelay = 50_000
	// maxPoll is more than a poll takes, in ns: others had the CPU meanwhile.
	maxPoll = 10_000
)

// record records a sleep that no event ended.
func (k *wakeUpDelay) record(now int64) {
	switch late := now - k.due; {
	case late < 0: // a signal ended it
	case late > k.median:
		k.median = min(k.median+medianStep, 2*maxWakeUpDelay)
	default:
		k.median = max(k.median-medianStep, 0)
	}
}

// estimate is the median delay, in ns; 0 where it is not known.
func (k *wakeUpDelay) estimate() int64 {
	if k.median > maxWakeUpDelay {
		return 0
	}
	return k.median
}
