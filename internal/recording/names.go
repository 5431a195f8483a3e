package recording

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Sources, as they stand in the column source.
const (
	SourceProbe  = "probe"
	SourceServer = "server"
	SourceHost   = "host"
	SourceTap    = "tap"
	SourceLoad   = "load"
	// SourceProfile looks into applications: what their goroutines and threads wait for.
	SourceProfile = "profile"
)

// Of the load: the connection of its calls, since what is usual is known of all of its connections together; what
// begins the op of its histograms; and the error of a call that had no reply when the load ended.
const (
	ConnLoad         = "load"
	LoadFromIntended = "intended"
	LoadFromSend     = "sent"
	LoadUnanswered   = "unanswered"
)

// Subjects that are not the address of a node. A sample or event about a server (its INFO, its process, its main
// thread) has that node's address as subject, whichever source it comes from.
const (
	SubjectMachine = "machine" // this host as a whole: PSI, steal, memory
	SubjectSelf    = "self"    // slowpath itself: what the watch costs
	// CgroupPrefix + path is a CPU or memory cgroup of a watched process, e.g. "cgroup:/kubepods/pod1/redis".
	CgroupPrefix = "cgroup:"
	// ProcessPrefix + pid is a process on this host that is not the server: a client or a neighbour.
	ProcessPrefix = "process:"
	// ConnPrefix + address of its client's end is a connection that the tap watches from that end.
	ConnPrefix = "conn:"
	// PprofPrefix + host:port is an application that was profiled at that address of net/http/pprof.
	PprofPrefix = "pprof:"
)

// Kinds of profiles, as they stand in the column kind of profile.
const (
	ProfileGoroutine = "goroutine" // Go: where each goroutine is, at one moment
	ProfileMutex     = "mutex"     // Go: delays at locks during the watch, of those that hold them
	ProfileBlock     = "block"     // Go: delays at locks, channels and conditions during the watch, of those that wait
	ProfileCPU       = "cpu"       // Go: CPU time in a part of the watch
	ProfileThreads   = "threads"   // JVM: where each thread is, at one moment
	ProfileCPUClock  = "cpu-clock" // any process: samples of its threads on the CPU, by the kernel, each with its time
)

// Profiled is the body of the profile source's snapshot "application": whose profiles they are.
type Profiled struct {
	Address string `json:"address,omitempty"` // of net/http/pprof
	PID     int    `json:"pid,omitempty"`     // where it runs on this host
	Name    string `json:"name"`              // of the program, without directory and arguments
	Runtime string `json:"runtime,omitempty"` // "go", "jvm"; empty where nobody asked it
	Node    string `json:"node,omitempty"`    // the server that it is
}

// SnapshotApplication says of a subject of profiles whose they are; its body is a Profiled.
const SnapshotApplication = "application"

// SnapshotFrames is the user's own table of frames (internal/source/profile/stacks), under the subject self.
const SnapshotFrames = "frames"

// Meta keys.
const (
	MetaSchema    = "schema_version"
	MetaVersion   = "slowpath_version"
	MetaStart     = "start_ns"
	MetaEnd       = "end_ns"
	MetaTarget    = "target_address" // first target, as given, never with a password
	MetaNodes     = "nodes"          // JSON list of node addresses
	MetaKind      = "target_kind"    // standalone, cluster, proxy, unknown
	MetaServer    = "server"         // "redis 7.0.15"
	MetaSlow      = "slow_threshold" // "auto" or a Go duration
	MetaProbeRate = "probe_rate_per_second"
	// MetaWhom is a JSON Whom, where the kernel source passed on the calls of some processes only.
	MetaProcessFilter = "whom"
	// MetaSource + name is a JSON SourceStatus.
	MetaSource = "source:"
	// MetaDropped counts rows that were lost because the writer could not keep up.
	MetaDropped = "dropped_rows"
)

// Whom says whose calls the kernel source passed on, and how many there were.
type Whom struct {
	Only    string   `json:"only"`           // as on the command line: --pid 123
	Calls   int64    `json:"calls"`          // of the connections of those who are meant, slow or not
	Matched int      `json:"matched"`        // calls of theirs that are in the recording
	Others  int      `json:"others"`         // calls of others that would be
	Unknown int      `json:"unknown"`        // calls of processes that had ended before they could be looked at
	Seen    []string `json:"seen,omitempty"` // where no call matched: whose were seen
}

// Equal compares all but the names.
func (w Whom) Equal(o Whom) bool {
	return w.Only == o.Only && w.Calls == o.Calls && w.Matched == o.Matched && w.Others == o.Others &&
		w.Unknown == o.Unknown
}

// WhomOf reads it; false where all calls were meant.
func WhomOf(meta map[string]string) (w Whom, ok bool) {
	text, ok := meta[MetaProcessFilter]
	return w, ok && json.Unmarshal([]byte(text), &w) == nil
}

// SourceStatus says whether a source took part, and if not, why.
type SourceStatus struct {
	Name string `json:"name"`
	Used bool   `json:"used"`
	Why  string `json:"why,omitempty"`
}

// Kinds of events. Those of the host about a server's main thread are named as the states of an account.
const (
	KindThrottled = "throttled" // host, subject node: its cgroup had used its CPU quota; Detail ThreadDetail
	KindRunQueue  = "run-queue" // host, subject node: main thread runnable, another task had the CPU
	KindFrozen    = "frozen"    // host, subject node: stopped by a signal, a debugger or a freezer cgroup
	KindBlocked   = "blocked"   // host, subject node: uninterruptible sleep; Detail names the system call
	KindBusy      = "busy"      // host, subject node: on the CPU without a pause
	KindSlowlog   = "slowlog"   // server, subject node: SLOWLOG entry; Detail SlowlogDetail
	KindLatency   = "latency"   // server, subject node: LATENCY HISTORY sample; Detail LatencyDetail
	// server, subject node: the fork of BGSAVE, BGREWRITEAOF or a full resync; Detail ForkDetail
	KindFork       = "fork"
	KindRestart    = "restart"     // server, subject node: run_id changed or uptime went back
	KindRoleChange = "role-change" // server, subject node
	// server, subject node: one round of the server source, DurationNs from send to last reply
	KindPoll       = "poll"
	KindError      = "error"      // probe or server, subject node: a reply or network error; Detail ErrorDetail
	KindTCPInfo    = "tcp-info"   // probe, subject node: TCP_INFO of the socket of a slow call; Detail TCPDetail
	KindBlindSpot  = "blind-spot" // any source; Detail BlindSpot
	KindNeighbours = "neighbours" // host, subject node: who used the server's CPUs; Detail []Neighbour
)

// Kinds of events of the tap. It also writes throttled, run-queue, frozen and blocked, of the threads that serve
// (subject node) and of those that call (subject process:PID): each event is one wait, exact in time, with Share 1.
const (
	// tap, subject node: what a serving thread did between two socket events; Detail WorkDetail
	KindWork  = "work"
	KindOpen  = "open"  // tap, subject node: a connection was made; Detail ConnDetail
	KindClose = "close" // tap, subject node: a connection ended; Detail ConnDetail
	// tap, subject node: a fresh connection's commands up to its first that does work; Detail HandshakeDetail
	KindHandshake  = "handshake"
	KindRetransmit = "retransmit" // tap, subject node: TCP sent something again; Detail RetransmitDetail
	// tap, subject node: from the send of a reply to a client at another address to its acknowledgement; Detail
	// AckDetail
	KindAcknowledged = "acknowledged"
	// tap, subject node: a function of the server itself ran long; Detail InternalDetail
	KindInternal = "internal"
	// tap, subject node: a command that is meant to wait (BLPOP, XREAD BLOCK, WAIT) had its reply; Detail WaiterDetail
	KindWaiter = "waiter"
	// tap, subject node: a look at a process while a call of it waited that was slow in the end; Detail BesideDetail
	KindBeside = "beside"
	// tap, subject process:PID: a client's runtime collected garbage, for 1 ms or more; Detail CollectionDetail
	KindCollection = "collection"
	// tap, subject process:PID: from a question to a name server to its answer, of 1 ms or more, or until it was asked
	// again; Detail LookupDetail
	KindLookup = "lookup"
	// tap, subject node: a slow call of slowpath itself as its server saw it; Detail ServedDetail
	KindServed = "served"
)

// WorkDetail is the Detail of work: the event loop served one read, which others that were ready had to wait for. An
// empty Op is the loop's own work: timers, expiry, eviction, accepting, sending.
type WorkDetail struct {
	Op       string `json:"op"`                // first command of the read, upper case, with its subcommand
	Calls    int    `json:"calls"`             // commands that the read held
	Args     int    `json:"args"`              // of the first, with the command itself
	Bytes    int64  `json:"bytes"`             // of the read; with Sends of the reply that was sent
	Sends    bool   `json:"sends,omitempty"`   // the time went into one send system call
	Client   string `json:"client"`            // address of the connection
	Process  string `json:"process,omitempty"` // "redis-cli[1234]", where it is on this host
	TID      int    `json:"tid"`
	OnCPUNs  int64  `json:"on_cpu_ns"`          // the rest of the duration the thread was kept from running, or asleep
	Internal string `json:"internal,omitempty"` // name of the server's function, where symbols told: activeExpireCycle
}

// ConnDetail is the Detail of open and close. Ages are at the time of the event.
type ConnDetail struct {
	Client string `json:"client"` // its address
	PID    int    `json:"pid,omitempty"`
	Comm   string `json:"comm,omitempty"`
	Side   string `json:"side"` // which end saw it: server, client
	// client: from the SYN to the connection, or to the failure of one that was never made (age 0); 0 where unknown
	DialNs     int64  `json:"dial_ns"`
	AgeNs      int64  `json:"age_ns"`             // 0 where it was there before the watch
	IdleNs     int64  `json:"idle_ns"`            // since the last byte in either direction
	Calls      int64  `json:"calls"`              // that were answered on it
	InFlightNs int64  `json:"in_flight_ns"`       // time with at least one call in flight
	By         string `json:"by,omitempty"`       // close: client, server; empty where neither did, or it is unknown
	Reason     string `json:"reason,omitempty"`   // close: one of Close…; empty where both ends said goodbye in turn
	Waiting    int    `json:"waiting,omitempty"`  // close: calls that had no reply,
	Op         string `json:"op,omitempty"`       // the first of them, where it is known,
	OpBytes    int64  `json:"op_bytes,omitempty"` // and how long its request was
}

// Reasons of a close.
const (
	CloseReset       = "reset"       // one end broke it off (RST)
	CloseRefused     = "refused"     // nobody listens there
	CloseTimedOut    = "timed-out"   // TCP gave up: no answer to what was sent again and again, or to keepalive
	CloseUnreachable = "unreachable" // no way there (ICMP, ARP)
	CloseAborted     = "aborted"     // somebody on this host killed it (ss -K)
)

// ConnEnds is the body of the tap's snapshot "ends" of a connection: whose it is. Of "served" only the node is known.
type ConnEnds struct {
	Node string `json:"node"`
	PID  int    `json:"pid"`
	Comm string `json:"comm"`
}

// SnapshotServed says, once for each connection that was in use for a second, that its server's end is watched, with
// every call that is slow there: the recording of another host may have calls on it that this one has not.
const SnapshotServed = "served"

// Waiter is the body of the host source's snapshot "waiter" of a connection of this host that waits for a reply: who
// waits.
type Waiter struct {
	Node string `json:"node"`
	PID  int    `json:"pid,omitempty"`
	Comm string `json:"comm,omitempty"`
}

// Names of snapshots of the host source about callers.
const (
	SnapshotWaiter  = "waiter"
	SnapshotRuntime = "runtime" // of a process: how many threads its runtime means to keep busy
)

// SnapshotUnread is the host source's list of Unread about a node: who waits for a server whose main thread does not
// run. It is written when it changes, and empty when the thread runs again.
const SnapshotUnread = "unread"

// Unread is a process of this host, or another host, with connections on which something lies that the server has not
// read.
type Unread struct {
	PID         int    `json:"pid,omitempty"` // 0: on another host
	Comm        string `json:"comm,omitempty"`
	Host        string `json:"host,omitempty"` // address, where it is another
	Connections int    `json:"connections"`
}

// CollectionDetail is the Detail of collection.
type CollectionDetail struct {
	TID     int    `json:"tid"`
	Runtime string `json:"runtime"` // whose probes told: python, hotspot
}

// HandshakeDetail is the Detail of handshake; the event lasts from the SYN (or the accept) to the reply of Op.
type HandshakeDetail struct {
	Client string   `json:"client"`
	PID    int      `json:"pid,omitempty"`
	Comm   string   `json:"comm,omitempty"`
	Side   string   `json:"side"`
	DialNs int64    `json:"dial_ns"`
	Ops    []string `json:"ops"` // AUTH, HELLO, CLIENT SETINFO, SELECT, …, in order
	// What it says of its client library by CLIENT SETINFO, whether the server knows that command or not: the first
	// eight bytes of each, in lower case.
	Library string `json:"library,omitempty"`
	Version string `json:"version,omitempty"`

	Trips int `json:"trips"` // round trips that they took one after the other
	// from the last reply of those to the request of Op: long where nobody waited for the connection
	RestNs int64  `json:"rest_ns"`
	Op     string `json:"op"`                 // the first command that does work
	Bytes  int64  `json:"op_bytes,omitempty"` // of its request
}

// RetransmitDetail is the Detail of retransmit. The event begins with the last send before it.
type RetransmitDetail struct {
	Client  string `json:"client"`
	From    string `json:"from"`  // which end sent again: server, client
	State   string `json:"state"` // "established", "syn-sent", …
	Why     string `json:"why"`   // one of Resent…
	Unacked int64  `json:"unacked_bytes"`
	Total   int64  `json:"total"` // retransmissions of this end of the connection so far
	// Duplicates is how many segments of this end its peer had twice so far (DSACK): those were sent again for nothing.
	Duplicates int64 `json:"duplicates"`
}

// Library is a client library of a process, in the snapshot "process".
type Library struct {
	Name    string `json:"name"` // go-redis, jedis, redis-py, …
	Version string `json:"version"`
	How     string `json:"how"` // one of Library…
}

// How a library is known to be a process's.
const (
	LibraryBuiltIn   = "built-in"  // the program says that it was built of it
	LibraryOpen      = "open"      // the process has its file open
	LibraryInstalled = "installed" // it is where the process's runtime looks for packages; it may use another one
)

// LookupDetail is the Detail of lookup.
type LookupDetail struct {
	Comm      string `json:"comm"`
	Questions int    `json:"questions"` // that were sent on the socket meanwhile; IPv4 and IPv6 are two
	Answered  bool   `json:"answered"`  // false: it was asked again elsewhere, or given up
}

// InVain: probes of the tail come early, after two round trips. On a path whose acknowledgements are held up now and
// then, as where both ends share CPUs that are full, most of what they repeat has arrived, and nobody waits for it: the
// peer says that it has it twice.
func (d RetransmitDetail) Spurious() bool {
	return d.Why == ResentProbe && d.Total > 1 && 2*d.Duplicates+1 >= d.Total
}

// Why TCP sent something again.
const (
	ResentTimer = "timer" // nothing was acknowledged for as long as the retransmission timer runs
	ResentAcks  = "acks"  // acknowledgements of later segments say that this one is missing
	ResentProbe = "probe" // the last segment, to learn whether it arrived (tail loss probe)
)

// AckDetail is the Detail of acknowledged. The client's process has no part in an acknowledgement, but its kernel may
// put off that of a last segment that stands alone (delayed ACK).
type AckDetail struct {
	Client string `json:"client"`
	// from the first that was not acknowledged when the reply was sent to its end
	Unacked int64 `json:"unacked_bytes"`
	SureNs  int64 `json:"sure_ns"` // so much of the duration no delayed ACK explains
	Resent  int64 `json:"resent"`  // segments that the server sent again meanwhile
	// since its request came, the client said that it takes no more bytes
	Shut bool `json:"window_closed,omitempty"`
	// least round trip of the connection in the last minutes; 0 where unknown
	RTTMinNs int64 `json:"rtt_min_ns"`
}

// InternalDetail is the Detail of internal.
type InternalDetail struct {
	Function string `json:"function"` // symbol of the server's binary
	What     string `json:"what"`     // what it does, for people
	TID      int    `json:"tid"`
}

// WaiterDetail is the Detail of waiter. The event lasts from the request to the reply.
type WaiterDetail struct {
	Op      string `json:"op"`
	Client  string `json:"client"`
	Process string `json:"process,omitempty"`
	Behind  int    `json:"behind"` // calls of the same connection that waited for it
}

// BesideDetail is the Detail of beside: what the process of a slow call had last asked of the other nodes. The event
// lasts from the last request that the process had sent to the slow node, which is the slow call or one behind it, to
// the look.
type BesideDetail struct {
	Op      string   `json:"op"`
	Client  string   `json:"client"`
	Process string   `json:"process,omitempty"`
	Others  []Beside `json:"others"` // by node; none where it had asked no other in the last seconds
}

// Beside is the last exchange of a process with another node.
type Beside struct {
	Node string `json:"node"`
	// from the begin of the event to the send of this request; below 0 it was sent before
	AfterNs int64 `json:"after_ns"`
	// to the read of its reply, after which the node was asked nothing more until the look; 0 where it waits
	TookNs  int64 `json:"took_ns"`
	Waiting bool  `json:"waiting,omitempty"` // not answered by the look
}

// ServedDetail is the Detail of served. The event lasts from the first byte of the request in the server's socket to
// the reply that was sent.
type ServedDetail struct {
	Op     string       `json:"op"`
	Client string       `json:"client"` // slowpath's end of the connection
	Parts  []ServedPart `json:"parts"`  // disjoint, of all of the event
}

// ServedPart is a part of a served call, with the names of Segment; times in nanoseconds from the begin of the event.
type ServedPart struct {
	Actor   string `json:"actor"`
	State   string `json:"state"`
	FromNs  int64  `json:"from_ns"`
	ToNs    int64  `json:"to_ns"`
	Culprit string `json:"culprit,omitempty"`
}

// Task is a thread or process that had the CPU.
type Task struct {
	PID  int    `json:"pid"`
	TID  int    `json:"tid,omitempty"`
	Comm string `json:"comm"`
}

// ThreadDetail is the Detail of throttled, run-queue, frozen, blocked and busy.
type ThreadDetail struct {
	TID     int     `json:"tid,omitempty"`
	Share   float64 `json:"share"`             // part of the event's duration that was in this state, 0..1
	Cgroup  string  `json:"cgroup,omitempty"`  // throttled, frozen: path of the cgroup
	Cores   float64 `json:"cores,omitempty"`   // tap, throttled: the quota of that cgroup
	Syscall string  `json:"syscall,omitempty"` // blocked: name of the system call
	// tap, blocked: name of the server's file that the call is about, without its directory
	File   string `json:"file,omitempty"`
	Device string `json:"device,omitempty"` // and the block device that has it
	Wchan  string `json:"wchan,omitempty"`  // blocked: kernel function
	Comm   string `json:"comm,omitempty"`   // tap: name of the thread
	By     *Task  `json:"by,omitempty"`     // tap, run-queue: who had the CPU last
}

// Holder says which cgroup a thread was held by, and by which quota where that is known.
func (d ThreadDetail) Holder() string {
	if d.Cgroup == "" || d.Cores == 0 {
		return d.Cgroup
	}
	return fmt.Sprintf("CPU quota of %s (%.2f cores)", d.Cgroup, d.Cores)
}

// Call says in which system call a thread was blocked, and of which file where that is known: "fdatasync of
// appendonly.aof on vda".
func (d ThreadDetail) Call() string {
	text := d.Syscall
	if d.File != "" {
		text += " of " + d.File
	}
	if d.Device != "" {
		text += " on " + d.Device
	}
	return text
}

// SlowlogDetail is the Detail of a slowlog event. The server gives whole seconds: the command ended in
// [TimeNs, TimeNs+WindowNs) by the watcher's clock; DurationNs is the server's own figure.
type SlowlogDetail struct {
	ID       int64  `json:"id"`
	Command  string `json:"command"` // upper case, with subcommand: "CLUSTER NODES"
	ArgCount int    `json:"arg_count"`
	ArgBytes int64  `json:"arg_bytes"` // sum of the argument lengths that SLOWLOG kept
	Client   string `json:"client,omitempty"`
	Name     string `json:"name,omitempty"`
	WindowNs int64  `json:"window_ns"`
	// Framework is whose keys the command is about, where its first key or pattern has the form that a known framework
	// gives them by default. The key itself is not kept.
	Framework string `json:"framework,omitempty"`
}

// LatencyDetail is the Detail of a latency event; the time has whole seconds as with SlowlogDetail.
type LatencyDetail struct {
	Event    string `json:"event"` // "fork", "expire-cycle", "aof-fsync-always", …
	WindowNs int64  `json:"window_ns"`
}

// ForkDetail is the Detail of a fork: it began somewhere in [TimeNs, TimeNs+WindowNs).
type ForkDetail struct {
	Why      string `json:"why,omitempty"` // rdb, aof-rewrite, replication
	WindowNs int64  `json:"window_ns"`
}

// ErrorDetail is the Detail of an error event.
type ErrorDetail struct {
	Phase   string `json:"phase"`          // connect, tls, handshake, command
	Code    string `json:"code,omitempty"` // first word of an error reply: ERR, LOADING, BUSY, NOAUTH
	Message string `json:"message"`
}

// TCPDetail is the Detail of a tcp-info event: the state after the call, and what changed during it.
type TCPDetail struct {
	CallStartNs      int64  `json:"call_start_ns"`
	Conn             string `json:"conn"`
	RTTNs            int64  `json:"rtt_ns"`
	MinRTTNs         int64  `json:"min_rtt_ns"`
	RTONs            int64  `json:"rto_ns"`
	TotalRetrans     int64  `json:"total_retrans"`
	RetransDuring    int64  `json:"retrans_during"` // without those that the peer had twice (DSACK)
	Lost             int64  `json:"lost"`
	Unacked          int64  `json:"unacked"`
	NotsentBytes     int64  `json:"notsent_bytes"`
	RwndLimitedNs    int64  `json:"rwnd_limited_ns"`
	SynRetransDuring int64  `json:"syn_retrans_during,omitempty"`
	Local            string `json:"local,omitempty"` // this end, as the kernel source names it
}

// BlindSpot is what a watch could not see, why, and what would make it visible.
type BlindSpot struct {
	What   string `json:"what"`
	Why    string `json:"why"`
	Enable string `json:"enable"`
}

// Neighbour is a process that used CPU time on a CPU that the server may run on.
type Neighbour struct {
	PID     int     `json:"pid"`
	Command string  `json:"command"`
	Cgroup  string  `json:"cgroup,omitempty"`
	Cores   float64 `json:"cores"`            // CPU seconds per second
	Caller  bool    `json:"caller,omitempty"` // it holds a connection to the server
}

// selfMark ends the command of a Neighbour that is slowpath itself.
const selfMark = " (this watch)"

// OwnNeighbour is the command of a neighbour that is slowpath itself.
func OwnNeighbour(comm string) string { return comm + selfMark }

// Self reports whether the neighbour is slowpath itself.
func (n Neighbour) Self() bool { return strings.HasSuffix(n.Command, selfMark) }

// Detail encodes the detail of an event. The types above always encode.
func Detail(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("recording: detail that does not encode: " + err.Error())
	}
	return string(b)
}

// DetailOf decodes the detail of an event; a detail that does not decode gives the zero value.
func DetailOf[T any](e Event) T {
	var v T
	_ = json.Unmarshal([]byte(e.Detail), &v)
	return v
}
