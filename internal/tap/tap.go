// Package tap is the kernel source: eBPF programs that see every Redis call on this host, from the server's end of a connection, the
// client's, or both, without touching either.
//
// The programs (bpf/) run at the socket and scheduler tracepoints. They match requests and replies by order and byte offset, keep
// clocks of the threads at both ends, decide in the kernel which calls are slow, and report those with the moments of their way and the
// clocks at each; all others only feed histograms. This package loads them, turns their reports into rows of a recording, and says what
// it could not see.
package tap

import (
	"errors"
	"net/netip"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
)

// Node is a server to be watched.
type Node struct {
	Address string         // by which the recording knows it
	Remote  netip.AddrPort // where it is reached, resolved
	PID     int            // its process, where it runs on this host; 0 elsewhere
	Port    int            // at which that process listens, where it is not the port of Remote (a published port); 0: the same
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
	// Side is the only end of connections to write down, recording.Server or recording.Client: containers of one kernel are two hosts to a
	// recording. Empty: both, and calls that both ends saw as one.
	Side string
}

// Defaults.
const (
	DefaultSlow    = 5 * time.Millisecond
	DefaultMinWork = 200 * time.Microsecond
	// drainEvery is how often the ring buffer is emptied. The kernel wakes nobody, so that the watched threads do not pay for it.
	drainEvery = 50 * time.Millisecond
)

// Why the kernel source cannot run.
var (
	ErrPrivilege = errors.New("needs root, or CAP_BPF and CAP_PERFMON")
	ErrNoBTF     = errors.New("the kernel has no type information (CONFIG_DEBUG_INFO_BTF; /sys/kernel/btf/vmlinux)")
	ErrNoHook    = errors.New("the kernel lacks a tracepoint that the kernel source needs")
	ErrRejected  = errors.New("the kernel rejects the programs")
	ErrLinux     = errors.New("the kernel source needs Linux")
)
