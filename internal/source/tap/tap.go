// Package tap is the kernel source: eBPF programs that see every Redis call on this host, from the server's end of a
// connection, the client's, or both, without touching either.
//
// The programs (bpf/) run at the socket and scheduler tracepoints. They match requests and replies by order and byte
// offset, keep clocks of the threads at both ends, decide in the kernel which calls are slow, and report those with the
// moments of their way and the clocks at each; all others only feed histograms. This package loads them, turns their
// reports into rows of a recording, and says what it could not see.
package tap

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
)

// Node is a server to be watched.
type Node struct {
	Address string         // by which the recording knows it
	Remote  netip.AddrPort // where it is reached, resolved
	PID     int            // its process, where it runs on this host; 0 elsewhere
	Proxy   int            // process of this host that answers there and passes calls on to a server elsewhere; 0: none
	// at which that process listens, where it is not the port of Remote (a published port); 0: the same
	Port int
}

// Whom restricts the calls that are passed on to those whose client or server is a process that is meant: all that is
// given must hold for it. The zero value means all. What the calls waited for is told whoever did it.
type Whom struct {
	PID       int
	Comm      string // its command name, as in ps
	Container string // begin of a container's id, or a part of its cgroup's path
}

// String is the restriction as the command line has it.
func (w Whom) String() string {
	var out []string
	if w.PID != 0 {
		out = append(out, fmt.Sprintf("--pid %d", w.PID))
	}
	if w.Comm != "" {
		out = append(out, "--comm "+w.Comm)
	}
	if w.Container != "" {
		out = append(out, "--container "+w.Container)
	}
	return strings.Join(out, " ")
}

// Options of a watch.
type Options struct {
	Clock *clock.Real
	Sink  recording.Sink
	Nodes []Node
	Slow  time.Duration // calls of this length or more are reported; 0: DefaultSlow
	// SamplePerSecond of the other calls are reported too, at most, per CPU.
	SamplePerSecond int
	// MinWork is the shortest work of a server, and the shortest wait of a thread, that is reported; 0: DefaultMinWork.
	MinWork time.Duration
	// Whom restricts whose calls are passed on; its zero value does not.
	Whom Whom
	// Quota, if set, tells which cgroup's CPU quota a thread was just held by, and that quota in cores; "" where it is
	// not known.
	Quota func(tid int) (cgroup string, cores float64)
	// Side is the only end of connections to write down, recording.Server or recording.Client: containers of one kernel
	// are two hosts to a recording. Empty: both, and calls that both ends saw as one.
	Side string
}

// Defaults.
const (
	DefaultSlow    = 5 * time.Millisecond
	DefaultMinWork = 200 * time.Microsecond
	// drainEvery is how often the ring buffer is emptied. The kernel wakes nobody, so that the watched threads do not
	// pay for it.
	drainEvery = 50 * time.Millisecond
	// drainBytes is what is read of it before other work is due, some thousand reports.
	drainBytes = 1 << 20
)

// Why the kernel source cannot run.
var (
	ErrPrivilege = errors.New("needs root, or CAP_BPF and CAP_PERFMON")
	ErrNoBTF     = errors.New("the kernel has no type information (CONFIG_DEBUG_INFO_BTF; /sys/kernel/btf/vmlinux)")
	ErrNoHook    = errors.New("the kernel lacks what the kernel source needs")
	ErrRejected  = errors.New("the kernel rejects the programs")
	ErrLinux     = errors.New("the kernel source needs Linux")
)
