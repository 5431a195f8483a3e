package clock

import "sync/atomic"

// Pace is how many times as rarely as planned something is done. It may be changed while it is done; nil is once.
type Pace struct{ times atomic.Int64 }

// Set has it done so many times as rarely as planned; less than 1 is 1.
func (p *Pace) Set(times int64) { p.times.Store(times) }

// Times is what was set.
func (p *Pace) Times() int64 {
	if p == nil {
		return 1
	}
	return max(1, p.times.Load())
}
