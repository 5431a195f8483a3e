package bottleneck

import "time"

// Observations are what was seen of one load. What is not known is zero; Server.Visibility says what was seen of a
// server.
type Observations struct {
	Window    time.Duration // from the first send to the end of sending
	Load      Load
	Generator Generator
	Servers   []Server // one per node, and the proxy in front where there is one
	Network   Network
	Pool      *Pool       // nil: callers have connections of their own
	Machine   map[int]CPU // the CPUs of the generator's host
}

// Load is what was asked for and what came back.
type Load struct {
	Open           bool    // a schedule made calls due; else the next call was sent when one had come back
	AskedPerSecond float64 // of the schedule, over the window
	Calls          int64   // that had a reply
	Unsent         int64   // calls of the schedule that were due and could not be sent
	InFlight       int64   // at the end
	Connections    int
	Pipeline       int // calls that may be in flight on each
	// mean time for which a call occupies its connection: from the send to the reply, and with Connecting
	Service     time.Duration
	Connecting  time.Duration // of Service: opening the connection, where each call has its own
	ResponseP99 time.Duration // from the intended time
	LateP99     time.Duration // how much later than intended the generator sent what it could have sent
}

// PerSecond is the rate that was reached.
func (o *Observations) PerSecond() float64 {
	if o.Window <= 0 {
		return 0
	}
	return float64(o.Load.Calls) / o.Window.Seconds()
}

// Generator is the load generator itself.
type Generator struct {
	Threads  []Thread
	BusyPoll bool    // its threads spin, so that their CPU time says nothing
	Spinning float64 // share of the CPU time in which they polled and found nothing to do
	CPUs     []int   // where it may run
	Quotas   []Quota
}

// Thread is the time of a thread in the window: on a CPU, and in the run queue. RunQueue includes throttled time.
type Thread struct {
	Name          string
	CPU, RunQueue time.Duration
}

// Quota is a CPU quota during the window. ThrottledTime is summed over CPUs.
type Quota struct {
	Cgroup                    string
	Cores                     float64
	Periods, ThrottledPeriods int64
	ThrottledTime             time.Duration
}

// Visibility says how the CPU time of a server was read.
type Visibility string

// The best first.
const (
	VisibleOnHost     Visibility = "host"    // /proc of this host
	VisibleMainThread Visibility = "main"    // used_cpu_*_main_thread of INFO (Redis 6.2)
	VisibleProcess    Visibility = "process" // used_cpu_* of INFO: the whole process
	NotVisible        Visibility = ""
)

// Server is one server, or a proxy.
type Server struct {
	Address       string
	Proxy         bool
	Process       string // name of its process on this host, where it is a proxy or does not say what it is
	Visibility    Visibility
	WhyNotVisible string        // empty where it was visible
	MainThread    Thread        // with VisibleProcess all threads together
	OtherThreads  []Thread      // only with VisibleOnHost
	CPU           time.Duration // of all threads; 0 with NotVisible
	Blocked       float64       // share of readings with the main thread in uninterruptible sleep: disk, page faults
	Quotas        []Quota
	CPUs          []int // where it may run
	// RepliesQueued is the mean share of its sockets that had unsent replies; -1 where that cannot be seen.
	RepliesQueued float64
}

// Network is the path to the servers, seen from the generator's sockets.
type Network struct {
	Remote      bool          // the server is on another host
	MinRTT      time.Duration // of the kernel (tcpi_min_rtt), 0 where unknown
	Retransmits int64         // segments that the generator retransmitted
	// mean share of the window in which a socket could not send, since the server did not read
	RwndLimited float64
	// mean share of the generator's sockets that had unsent requests
	RequestsQueued float64
	BytesPerSec    float64 // of payload, the larger direction
	Link           string  // interface
	LinkBits       float64 // its speed per second, 0 where unknown
	LinkUsedBits   float64 // of the larger direction per second, all traffic of the interface
}

// Pool is a pool of connections that callers share.
type Pool struct {
	Size, Callers int
	Wait          time.Duration // mean, of a call for a connection
}

// CPU is what one CPU of the machine did, as shares of the window.
type CPU struct{ Busy, Steal float64 }
