// Package sampler looks where processes of this host spend their CPU time: perf's cpu-clock interrupts each CPU some 99
// times per second, and a BPF program notes what a process that is meant was doing, in user space and in the kernel.
//
// The processes need no preparation: callers are found by what compilers write for exceptions (.eh_frame), and by frame
// pointers where a program has no such tables (Go, compilers at run time).
package sampler

import (
	"errors"
	"fmt"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/source/hostfs"
)

// Rate is how often each CPU is looked at, per second. It is not 100, so as not to keep step with what programs do each
// 10 ms.
const Rate = 99

// Period is the CPU time that a sample stands for.
const Period = time.Second / Rate

// drainEvery is how often samples are taken out of the ring buffer.
const drainEvery = 100 * time.Millisecond

// Why nothing can be sampled.
var (
	ErrPrivilege = errors.New("needs root, or CAP_BPF and CAP_PERFMON")
	ErrKernel    = errors.New("the kernel takes no BPF program at perf's cpu-clock")
	ErrLinux     = fmt.Errorf("sampling CPU time needs Linux: %w", errors.ErrUnsupported)
)

// Sample is what a thread did at one moment.
type Sample struct {
	TimeNs   int64 // by the monotonic clock of the kernel
	PID, TID int
	Thread   string   // its name
	User     []string // functions in user space, from the outermost caller to where it was,
	Kernel   []string // and in the kernel, if it was there
	// Cut says that the callers were not followed to the begin of the thread.
	Cut bool
}

// Counts of the kernel's side. What is lost is said to the user.
type Counts struct {
	Seen int64 // samples of the processes that are meant,
	Lost int64 // those for which the buffer had no room,
	Bare int64 // and those of whose user stack nothing could be read
}

// Options of a sampler.
type Options struct {
	FS    hostfs.FS
	Clock clock.Clock
	PIDs  []int
	// Take is given each sample; Blind is told what cannot be seen of a process, once for each reason: what, why, and
	// how to enable it.
	Take  func(Sample)
	Blind func(pid int, what, why, enable string)
}
