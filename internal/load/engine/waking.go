//go:build linux

package engine

// waking is how late a worker wakes up for what its schedule has due. A sleep that is shorter would end too late, and
// spare little of a CPU: the worker spins instead.
type waking struct {
	up   int64 // when the running sleep is to end, if something is due then; else 0
	late int64 // the median of how late sleeps ended, about
}

const (
	// lateStep is by how much a sleep moves the median: from nothing to 20 µs takes 100 sleeps.
	lateStep = 200
	// longestWaking is beyond what it takes to wake up: others use the CPU then, and spinning would not help.
	longestWaking = 50_000
	// longestLook is beyond what it takes to look whether something has come: others had the CPU meanwhile.
	longestLook = 10_000
)

// slept learns from a sleep that nothing ended before its time.
func (k *waking) slept(now int64) {
	switch late := now - k.up; {
	case late < 0: // a signal ended it
	case late > k.late:
		k.late = min(k.late+lateStep, 2*longestWaking)
	default:
		k.late = max(k.late-lateStep, 0)
	}
}

// takes is how long waking up takes, in ns; 0 where that cannot be told.
func (k *waking) takes() int64 {
	if k.late > longestWaking {
		return 0
	}
	return k.late
}
