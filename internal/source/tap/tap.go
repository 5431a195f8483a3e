// Package tap is the tap: eBPF programs that see every Redis call on this host, from the server's end of a
// connection, the client's, or both, without touching either.
//
// The programs (bpf/) run at tracepoints of sockets and of the scheduler. They match requests and replies by order and
// byte offset, keep clocks of the threads at both ends, decide in the kernel which calls are slow, and report those
// with times and clocks at each step; all others only go to histograms. This package loads them, turns their events
// into rows of a recording, and says what it could not see.
package tap

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
	"slowpath/internal/source/hostfs"
)

// Node is a server to be watched.
type Node struct {
	Address string         // by which the recording knows it
	Remote  netip.AddrPort // where it is reached, resolved
	PID     int            // its process, where it runs on this host; 0 elsewhere
	Proxy   int            // process of this host that answers there and passes calls on to a server; 0: none
	// at which that process listens, where it is not the port of Remote (a published port); 0: the same
	Port int
	// Observers are connections of other observers that are open already, by the clients' addresses as the server has
	// them: not one of their calls is a user's.
	Observers []netip.AddrPort
}

// ProcessFilter selects the calls that are passed on: those whose client or server is a process that matches all that
// is given. The zero value selects all. What a call waited for is recorded whichever process did it.
type ProcessFilter struct {
	PID       int
	Comm      string // its command name, as in ps
	Container string // beginning of a container's id, or a part of its cgroup's path
}

// String is the filter as the command line has it.
func (f ProcessFilter) String() string {
	var out []string
	if f.PID != 0 {
		out = append(out, fmt.Sprintf("--pid %d", f.PID))
	}
	if f.Comm != "" {
		out = append(out, "--comm "+f.Comm)
	}
	if f.Container != "" {
		out = append(out, "--container "+f.Container)
	}
	return strings.Join(out, " ")
}

// Files are the files of the host that are read: processes' in /proc, and block devices' in /sys. Names are absolute.
type Files interface {
	// Path is where a name really is, for libraries that read by themselves.
	Path(name string) string
	ReadFile(name string) ([]byte, error)
	Open(name string) (hostfs.File, error)
	ReadDir(name string) ([]string, error)
	Readlink(name string) (string, error)
}

// Options of a watch.
type Options struct {
	Clock clock.Clock
	Files Files
	Sink  recording.Sink
	Nodes []Node
	Slow  time.Duration // calls of this length or more are reported; 0: DefaultSlow
	// SamplePerSecond: up to this rate all other calls are reported too, as many as that at once; of more a part. Where
	// it is small, more calls are reported than that. 0: none.
	SamplePerSecond int
	// MinWork is the shortest work of a server, and the shortest wait of a thread, that is reported; 0: DefaultMinWork.
	MinWork time.Duration
	// Processes selects the calls that are passed on; its zero value selects all.
	Processes ProcessFilter
	// Quota, if set, says which cgroup's CPU quota a thread was just throttled by, and that quota in cores; "" where it
	// is not known.
	Quota func(tid int) (cgroup string, cores float64)
	// Connections is how many connections are followed at a time; 0: DefaultConnections. See its cost in
	// docs/overhead.md.
	Connections int
	// Budget of CPU time for the programs, per time (0.03: 3 % of a core): connections that make more calls than it
	// takes to follow are left out in part. 0: no limit.
	Budget float64
	// DrainEvery is how often the ring buffer is emptied; 0: DefaultDrainEvery. The programs wake nobody, so that the
	// watched threads do not pay for it.
	DrainEvery time.Duration
	// ReportBytes is the size of that buffer, a power of two; 0: that of the programs, 8 MiB. This process has twice as
	// much mapped.
	ReportBytes uint32
	// Side is the only end of connections to record, recording.Server or recording.Client: containers of one kernel are
	// two hosts to a recording. Empty: both, and calls that both ends saw as one.
	Side string
}

// Defaults.
const (
	DefaultSlow    = 5 * time.Millisecond
	DefaultMinWork = 200 * time.Microsecond
	// DefaultConnections are as many as a server takes by default, twice: each has two ends.
	DefaultConnections = 20_000
	// DefaultBudget is that of the programs: 3 % of a core. See docs/overhead.md.
	DefaultBudget = 0.03
	// MaxConnections bounds that: 8 GiB of memory if all are open.
	MaxConnections = 1_000_000
	// DefaultDrainEvery is short enough for the files that calls used to be there still.
	DefaultDrainEvery = 50 * time.Millisecond
	// drainBytes are read of it before other work is due, some thousand events.
	drainBytes = 1 << 20
)

// Why the tap cannot run.
var (
	ErrPrivilege = errors.New("needs root, or CAP_BPF and CAP_PERFMON")
	ErrNoBTF     = errors.New("the kernel has no type information (CONFIG_DEBUG_INFO_BTF; /sys/kernel/btf/vmlinux)")
	ErrNoHook    = errors.New("the kernel lacks what the tap needs")
	ErrNoLoop    = fmt.Errorf("%w: it has no bpf_loop (Linux 5.17), by which requests and replies are read", ErrNoHook)
	ErrRejected  = errors.New("the kernel rejects the programs")
	ErrFiles     = errors.New("too few files may be open for the kernel programs (RLIMIT_NOFILE)")
	ErrLinux     = errors.New("the tap needs Linux")
)
