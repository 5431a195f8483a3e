// Package sampler samples where processes of this host spend their CPU time: perf's cpu-clock interrupts each CPU about
// 99 times per second, and a BPF program records the stack of a selected process, in user space and in the kernel.
//
// The processes need no preparation: callers are found by the tables for exceptions (.eh_frame), and by frame pointers
// where a program has no such tables (Go, just-in-time compilers).
package sampler

import (
	"errors"
	"fmt"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/source/hostfs"
)

// Rate is how often each CPU is sampled, per second, at most. It is not 100, so as not to keep step with what programs
// do every 10 ms.
const Rate = 99

// mostSingle is how many samples per second single threads have together, at most. Each takes about 35 µs
// (docs/overhead.md): 400 take 1.4 % of a core, where all of these threads always run.
const mostSingle = 400

// Target is a process that is sampled.
type Target struct {
	PID int
	TID int // its only thread that is, in user space alone, and without a word of names that it lacks; 0: all are
}

// rateFor is how often each CPU is sampled: less often where only single threads are, and there are many of them.
func rateFor(targets []Target) uint64 {
	for _, t := range targets {
		if t.TID == 0 {
			return Rate
		}
	}
	return uint64(min(Rate, mostSingle/max(len(targets), 1)))
}

// drainEvery is how often samples are taken out of the ring buffer.
const drainEvery = 100 * time.Millisecond

// Errors of Load and Start.
var (
	ErrPrivilege = errors.New("needs root, or CAP_BPF and CAP_PERFMON")
	ErrKernel    = errors.New("the kernel takes no BPF program at perf's cpu-clock")
	ErrLinux     = fmt.Errorf("sampling CPU time needs Linux: %w", errors.ErrUnsupported)
)

// Sample is what a thread did at one time.
type Sample struct {
	TimeNs   int64 // by the monotonic clock of the kernel
	PID, TID int
	Thread   string   // its name
	User     []string // functions in user space, from the outermost caller to where it was,
	Kernel   []string // and in the kernel, if it was there
	// CPU is the time on the CPU that the sample stands for.
	CPU time.Duration
	// Cut says that the callers were not found up to the first function of the thread.
	Cut bool
}

// Counts of the BPF program.
type Counts struct {
	Seen int64 // samples of the selected processes
	Lost int64 // of these, those for which the buffer had no room
	Bare int64 // of these, those of whose user stack nothing could be read
}

// Options of a sampler.
type Options struct {
	FS    hostfs.FS
	Clock clock.Clock
	// Take is called with each sample. Blind is called with what cannot be seen of a process, once for each reason:
	// what, why, and how to enable it.
	Take  func(Sample)
	Blind func(pid int, what, why, enable string)
}
