// Package bench makes one load and its result: it adds up what the workers of internal/load/engine count, per second
// and in total, says what limited the load, and notes what the numbers do not show.
package bench

import (
	"time"

	"slowpath/internal/load/bottleneck"
	"slowpath/internal/load/experiment"
)

// Schema of Result.
const Schema = "slowpath.bench/v1"

// Result is the result of a load, the document slowpath.bench/v1 (docs/json.md).
type Result struct {
	Schema   string    `json:"schema"`
	Version  string    `json:"version"` // of the program that made the load
	Target   Target    `json:"target"`
	Settings Settings  `json:"settings"`
	Start    time.Time `json:"start"`
	Seconds  float64   `json:"seconds"` // of sending
	// Interrupted: the load was ended before its time, or its number of calls, was reached.
	Interrupted bool `json:"interrupted"`

	Requests          int64   `json:"requests"` // that had a reply, after the end of sending too
	RequestsPerSecond float64 `json:"requests_per_second"`
	// Latency counts from the intended time; calls without a reply at the end count with their age. Service counts from
	// the send. In a closed loop both are the same.
	Latency Latency          `json:"latency"`
	Service Latency          `json:"service"`
	Ops     []Op             `json:"ops"`
	Errors  map[string]int64 `json:"errors"` // error replies by their code, and errors of connections
	Misses  int64            `json:"misses"` // reads that found nothing

	// LimitedBy is what kept the rate from being higher, one of the ids of package bottleneck; Bottleneck says it in a
	// sentence, with the evidence.
	LimitedBy  string             `json:"limited_by"`
	Bottleneck bottleneck.Verdict `json:"limit"`

	Unanswered  Unanswered  `json:"unanswered"`
	Schedule    *Schedule   `json:"schedule,omitempty"` // open loop
	Replay      *Replay     `json:"replay,omitempty"`   // of a log
	Routing     *Routing    `json:"routing,omitempty"`  // where the target has several nodes
	Connections Connections `json:"connections"`
	// Dials is the phases of connections that were opened: dns, connect, tls, handshake, whole.
	Dials     map[string]Latency `json:"dials"`
	PoolWait  *Latency           `json:"pool_wait,omitempty"` // from the time a call was due until it had a connection
	TimedOut  int64              `json:"timed_out"`           // calls without a reply within settings.timeout_ns
	Delivered int64              `json:"delivered"`           // messages that subscribers got
	// from the time a call was due until a subscriber had its message
	Delivery   *Latency         `json:"delivery,omitempty"`
	Mismatches map[string]int64 `json:"mismatches"` // wrong replies, with --verify
	// Checks are the bounds of --fail-if.
	Checks    []experiment.Check `json:"checks,omitempty"`
	Bytes     Bytes              `json:"bytes"`
	Generator Generator          `json:"generator"`
	Servers   []Server           `json:"servers,omitempty"` // not of a result that several were added up to
	Series    []Second           `json:"series"`
	Parts     []Part             `json:"parts,omitempty"` // of a result that several were added up to
	Notes     []string           `json:"notes"`           // sentences: what one must know to read the result
}

// Target is the server that was loaded.
type Target struct {
	Address string `json:"address"`
	Kind    string `json:"kind"`   // standalone, cluster, proxy, unknown
	Server  string `json:"server"` // "redis 7.0.15", empty where it does not say
}

// Loops.
const (
	Closed = "closed" // the next call is sent when one has come back
	Open   = "open"   // calls are due by a schedule
)

// Settings of the load.
type Settings struct {
	Loop         string    `json:"loop"`
	Connections  int       `json:"connections"`
	Pipeline     int       `json:"pipeline"`
	PipelineMode string    `json:"pipeline_mode"` // window, batch
	Threads      int       `json:"threads"`
	BusyPoll     bool      `json:"busy_poll"`
	Arrivals     string    `json:"arrivals,omitempty"` // open loop: uniform, poisson
	Stretches    []Stretch `json:"schedule,omitempty"` // open loop
	DurationNs   int64     `json:"duration_ns"`        // as asked for; 0: no limit
	Requests     int64     `json:"requests"`           // as asked for; 0: no limit
	// StartAt is the start barrier, nil without.
	StartAt        *time.Time `json:"start_at,omitempty"`
	Seed           uint64     `json:"seed"`
	Protocol       int        `json:"protocol"` // RESP 2 or 3
	TLS            bool       `json:"tls"`
	PerCall        bool       `json:"per_call"`
	ReconnectEvery int        `json:"reconnect_every"` // calls; 0: never
	ColdStart      bool       `json:"cold_start"`
	TimeoutNs      int64      `json:"timeout_ns"`
	Pool           int        `json:"pool"` // connections; 0: none
	PoolWorkers    int        `json:"pool_workers"`
	Subscribers    int        `json:"subscribers"`
	Verify         bool       `json:"verify"`
	Workload       any        `json:"workload,omitempty"` // as the command line says it
}

// Stretch is a part of the schedule of an open loop.
type Stretch struct {
	DurationNs int64   `json:"duration_ns"`
	From       float64 `json:"from_per_second"`
	To         float64 `json:"to_per_second"`
}

// Op is the result of one kind of call.
type Op struct {
	Op                string  `json:"op"`
	Ratio             float64 `json:"ratio"` // of the mix, as asked for
	Requests          int64   `json:"requests"`
	RequestsPerSecond float64 `json:"requests_per_second"`
	Errors            int64   `json:"errors"` // error replies
	Misses            int64   `json:"misses"`
	Latency           Latency `json:"latency"`
	Service           Latency `json:"service"`
}

// Unanswered counts the calls that have no reply. Those in flight and unsent count with their age at the end, which is
// less than they would have taken.
type Unanswered struct {
	InFlight int64 `json:"in_flight"` // no reply when the load ended
	Unsent   int64 `json:"unsent"`    // due by the schedule, and never sent
	Failed   int64 `json:"failed"`    // their connection ended before the reply, or it came too late; without a latency
}

// Routing is how the calls were spread over the nodes of a cluster, a master and its replicas, or the masters that
// sentinels named.
type Routing struct {
	ReadFrom string           `json:"read_from"` // master, replica, any
	Nodes    map[string]int64 `json:"nodes"`     // requests that had a reply, by the node's address
	// Retried counts the replies after which a call was sent again, by their code: MOVED, ASK, TRYAGAIN, CLUSTERDOWN,
	// LOADING, READONLY, …. They are no errors: the time of such a call ends with its last reply.
	Retried map[string]int64 `json:"sent_again"`
}

// Schedule says how well an open loop kept its own.
type Schedule struct {
	PerSecond float64 `json:"per_second"` // mean rate that was asked for
	// How much later than intended the generator sent calls that had a connection with room: its own delay. The wait
	// for such a connection is not in it, but in the latency.
	LateP50Ns int64 `json:"late_p50_ns"`
	LateP99Ns int64 `json:"late_p99_ns"`
	LateMaxNs int64 `json:"late_max_ns"`
	Kept      bool  `json:"kept"` // LateP99Ns is at most KeptWithin, and nothing stayed unsent
}

// Connections of the load.
type Connections struct {
	Lost        int64 `json:"lost"`
	Reconnected int64 `json:"reconnected"`
	Retired     int64 `json:"retired"` // closed as planned: --per-call, --reconnect-every
}

// Bytes on the wire, without TLS and TCP.
type Bytes struct {
	Out int64 `json:"out"`
	In  int64 `json:"in"`
}

// Generator is what the load cost on its own side.
type Generator struct {
	// CPUNs is the CPU time of the whole process during the load.
	CPUNs                int64   `json:"cpu_ns"`
	CPUSecondsPerMillion float64 `json:"cpu_seconds_per_million_requests"`
	WorkersCPUNs         int64   `json:"workers_cpu_ns"`       // of the threads that send and receive
	WorkersRunQueueNs    int64   `json:"workers_run_queue_ns"` // time of these threads in the run queue
	// of WorkersCPUNs, about: polls that found nothing
	WorkersSpunNs         int64   `json:"workers_spun_ns"`
	SystemCallsPerRequest float64 `json:"system_calls_per_request"`
}

// Server is what the load cost a node of the target, the proxy that the target is, or the server behind it.
type Server struct {
	Address string `json:"address"`
	Process string `json:"process"` // name of a process on this host that is a proxy, or does not say what it is
	Proxy   bool   `json:"proxy"`
	// CPUFrom is where CPUNs was read: host, main or process, the visibilities of package bottleneck; empty: nowhere.
	CPUFrom string `json:"cpu_from"`
	CPUNs   int64  `json:"cpu_ns"` // of all threads
}

// Second is one second of the load; the last may be shorter.
type Second struct {
	Second            int     `json:"second"` // from the start
	Seconds           float64 `json:"seconds"`
	Requests          int64   `json:"requests"`
	Errors            int64   `json:"errors"` // error replies, and errors of connections
	Misses            int64   `json:"misses"`
	Retried           int64   `json:"sent_again"` // replies such as MOVED, after which a call was sent again
	P50Ns             int64   `json:"p50_ns"`     // latency
	P99Ns             int64   `json:"p99_ns"`
	P999Ns            int64   `json:"p999_ns"`
	MaxNs             int64   `json:"max_ns"`
	ServiceP50Ns      int64   `json:"service_p50_ns"`
	ServiceP99Ns      int64   `json:"service_p99_ns"`
	ServiceMaxNs      int64   `json:"service_max_ns"`
	LateP99Ns         int64   `json:"late_p99_ns"` // of an open loop
	InFlight          int64   `json:"in_flight"`   // at the end of the second
	Connected         int     `json:"connected"`
	Reconnected       int64   `json:"reconnected"`
	BytesOut          int64   `json:"bytes_out"`
	BytesIn           int64   `json:"bytes_in"`
	WorkersCPUNs      int64   `json:"workers_cpu_ns"`
	WorkersRunQueueNs int64   `json:"workers_run_queue_ns"`
}
