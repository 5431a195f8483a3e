package bottleneck

import "time"

// Observations are what was seen of one load. What is not known is zero, and Server.Sight says how a server was seen.
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
	// mean of what a call holds its connection for: from the send to the reply, and with Connecting
	Service     time.Duration
	Connecting  time.Duration // of Service, what opening the connection takes, where each call has one of its own
	ResponseP99 time.Duration // from the intended time
	LateP99     time.Duration // how much later than intended the generator sent what it could have sent
}

// PerSecond is the rate that came about.
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
	Spinning float64 // share of the CPU time in which they looked for replies and calls that are due, and found none
	CPUs     []int   // where it may run
	Quotas   []Quota
}

// Thread is what a thread had of the window: on a CPU, and ready to run but without one. Ready holds throttled time.
type Thread struct {
	Name       string
	CPU, Ready time.Duration
}

// Quota is a CPU quota during the window. Held is summed over CPUs.
type Quota struct {
	Cgroup             string
	Cores              float64
	Periods, Throttled int64
	Held               time.Duration
}

// Sight is how a server was seen.
type Sight string

// Kinds of sight, the best first.
const (
	SightHost    Sight = "host"    // by the files of this host
	SightMain    Sight = "main"    // its own figures for its main thread (used_cpu_*_main_thread of INFO, Redis 6.2)
	SightProcess Sight = "process" // its own figures for the whole process (used_cpu_* of INFO)
	SightNone    Sight = ""
)

// Server is one server, or a proxy.
type Server struct {
	Address string
	Proxy   bool
	Process string // name of its process on this host, where that is no server that says what it is
	Sight   Sight
	Why     string   // it was not seen
	Main    Thread   // with SightProcess all threads together
	Others  []Thread // only by SightHost
	Blocked float64  // share of looks at which the main thread was in uninterruptible sleep: disk, page faults
	Quotas  []Quota
	CPUs    []int // where it may run
	// Queued is the share of looks at which replies waited in its sockets to get onto the way; -1 where that is not to
	// be seen.
	Queued float64
}

// Network is the way between, seen from the generator's sockets.
type Network struct {
	Remote      bool          // the server is on another host
	MinRTT      time.Duration // least round trip of the kernels, 0 where unknown
	Retransmits int64         // segments that the generator sent again
	// share of the window in which a socket could not send since the server did not read, on average
	RwndLimited float64
	// share of looks at the generator's sockets at which requests waited in them to get onto the way
	Queued       float64
	BytesPerSec  float64 // of payload, the larger direction
	Link         string  // interface
	LinkBits     float64 // its speed per second, 0 where unknown
	LinkUsedBits float64 // of the larger direction per second, all that went over it
}

// Pool is a pool of connections that callers share.
type Pool struct {
	Size, Callers int
	Wait          time.Duration // mean, of a call for a connection
}

// CPU is what one CPU of the machine did, as shares of the window.
type CPU struct{ Busy, Steal float64 }
