package recording

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// Profiled is the body of the profile source's snapshot "application": the profiled application.
type Profiled struct {
	Address string `json:"address,omitempty"`  // of net/http/pprof
	PID     int    `json:"pid,omitempty"`      // where it runs on this host
	Name    string `json:"name"`               // of the program, without directory and arguments
	Runtime string `json:"runtime,omitempty"`  // "go", "jvm"; empty if it was not asked for a profile, and no JVM
	Node    string `json:"node,omitempty"`     // the node, if it is a server
	Loop    int    `json:"loop_tid,omitempty"` // the thread with its event loop, by the labels tid of its samples
	// LoopOnly: no other thread was sampled, since nobody asked for it.
	LoopOnly bool `json:"loop_only,omitempty"`
}

// SnapshotApplication describes a subject of profiles; its body is a Profiled.
const SnapshotApplication = "application"

// SnapshotFrames is the user's own table of frames (internal/source/profile/stacks), of the subject self.
const SnapshotFrames = "frames"

// SnapshotEnds is the tap's name for the node and the client process of a connection; its body is a ConnEnds.
const SnapshotEnds = "ends"

// ConnEnds is the body of the tap's snapshot "ends" of a connection: its node and its client process. "served" has the
// node only.
type ConnEnds struct {
	Node string `json:"node"`
	PID  int    `json:"pid"`
	Comm string `json:"comm"`
	// one of Nagle…; empty if unknown
	Nagle string `json:"nagle,omitempty"`
}

// SnapshotProgram is the name of the snapshot of a process that calls (subject ProcessPrefix and its number), written
// when it is first seen; its body is a Program.
const SnapshotProgram = "program"

// Program is what a process runs, and for whom. Nothing of its arguments but the name of a script, a module or a jar is
// in it.
type Program struct {
	Comm      string `json:"comm"`                // name of its main thread, as in ps
	Name      string `json:"name"`                // what its command line runs: "worker.py", "app.jar", "redis-cli"
	User      string `json:"user,omitempty"`      // its name on the host, or its number
	Unit      string `json:"unit,omitempty"`      // of systemd
	Container string `json:"container,omitempty"` // id
	Pod       string `json:"pod,omitempty"`       // of Kubernetes, uid

	PodNamespace  string `json:"pod_namespace,omitempty"`
	PodName       string `json:"pod_name,omitempty"`
	ContainerName string `json:"container_name,omitempty"`
	Deployment    string `json:"deployment,omitempty"` // that the name of the pod tells
}

// PodText names a pod for people, with its container: "pod shop/cart-789b6cdf47-x2k9w (container app)", or by its uid
// where its name is not known. Empty where there is no pod.
func PodText(uid, namespace, name, container string) string {
	switch {
	case uid == "":
		return ""
	case name == "":
		return "pod " + uid
	case container == "":
		return "pod " + namespace + "/" + name
	}
	return "pod " + namespace + "/" + name + " (container " + container + ")"
}

// SnapshotHostName is the name of the snapshot of another host that calls (subject HostPrefix and its address as CLIENT
// LIST has it), once it is seen; its body is a HostName.
const SnapshotHostName = "host-name"

// HostName is the name of a host.
type HostName struct {
	Name string `json:"name"` // letters, digits, dots, - and _
	By   string `json:"by"`   // one of NamedBy…
}

// How the name of a host is known.
const (
	NamedByHosts = "/etc/hosts" // of the host that watched
	NamedByDNS   = "dns"        // a reverse lookup: whoever has the address says so
)

// SnapshotProxy is the host source's name for the process that answers at the address of a node and passes calls on to
// a server; its body is a ProcessOfNode.
const SnapshotProxy = "proxy"

// ProcessOfNode is the process of a proxy.
type ProcessOfNode struct {
	PID  int    `json:"pid"`
	Comm string `json:"comm"`
	// Unnamed: it takes no CLIENT SETNAME, and may send the calls of all over the same connections.
	Unnamed bool `json:"unnamed,omitempty"`
	// Elsewhere is how many addresses it was connected to, to which it may pass calls on, that are of no watched node.
	Elsewhere int `json:"elsewhere,omitempty"`
}

// OwnCallsOfProxy is the blind spot of a proxy that takes no names of connections.
func OwnCallsOfProxy(address string) BlindSpot {
	return BlindSpot{
		What: "which calls of the proxy at " + address + " to the other nodes are slowpath's own",
		Why: "it takes no CLIENT SETNAME, and sends the calls of all its clients over the same connections: they " +
			"count as its clients'",
		Enable: "--no-probe, or watch the server without the proxy",
	}
}

// SnapshotLeftOut is written when the tap leaves out a connection for the first time, since following all would take
// too much CPU time (see tap.Options.Budget). From then on what happened on it is not known, or in part.
const SnapshotLeftOut = "left_out"

// SnapshotServed is written once for each connection that was used for a second: its server's end is watched, so every
// call that is slow there is recorded. The recording of another host may have more calls on it.
const SnapshotServed = "served"

// Waiter is the body of the host source's snapshot "waiter": the process of a connection on this host that waits for a
// reply.
type PendingCaller struct {
	Node string `json:"node"`
	PID  int    `json:"pid,omitempty"`
	Comm string `json:"comm,omitempty"`
}

// Names of snapshots of the host source about callers.
const (
	SnapshotPendingCaller = "waiter"
	SnapshotRuntime       = "runtime" // of a process: its runtime, with what it is set to, and libraries
)

// SnapshotUnread is the host source's list of Unread of a node: the clients that wait for a server whose main thread
// does not run. It is written when it changes, and is empty when the thread runs again.
const SnapshotUnread = "unread"

// Unread is a process on this host, or another host, with connections that have bytes which the server has not read.
type Unread struct {
	PID         int    `json:"pid,omitempty"` // 0: on another host
	Comm        string `json:"comm,omitempty"`
	Host        string `json:"host,omitempty"` // its address, if it is another host
	Connections int    `json:"connections"`
}

// Library is a client library of a process, in the snapshot "process".
type Library struct {
	Name    string `json:"name"` // go-redis, jedis, redis-py, …
	Version string `json:"version"`
	How     string `json:"how"` // one of Library…
}

// How the library of a process is known.
const (
	LibraryBuiltIn   = "built-in"  // the build information of the program lists it
	LibraryOpen      = "open"      // the process has its file open
	LibraryInstalled = "installed" // in the package directory of the process's runtime; it may use another one
)

// Neighbour is a process that used CPU time on a CPU that the server may run on.
type Neighbour struct {
	PID     int     `json:"pid"`
	Command string  `json:"command"`
	Cgroup  string  `json:"cgroup,omitempty"`
	Cores   float64 `json:"cores"`            // CPU seconds per second
	Caller  bool    `json:"caller,omitempty"` // it has a connection to the server
	Child   bool    `json:"child,omitempty"`  // of the server: it writes a snapshot, or the AOF anew
}

// selfMark ends the command of a Neighbour that is slowpath itself.
const selfMark = " (this watch)"

// OwnNeighbour is the command of a neighbour that is slowpath itself.
func OwnNeighbour(comm string) string { return comm + selfMark }

// Self reports whether the neighbour is slowpath itself.
func (n Neighbour) Self() bool { return strings.HasSuffix(n.Command, selfMark) }

// SnapshotObserver is written once by the tap for a connection that turned out to be one of another slowpath, which
// watches the same server: neither a user nor a load.
const SnapshotObserver = "observer"

// SnapshotLatencyDoctor is the server source's report of LATENCY DOCTOR, of a node.
const SnapshotLatencyDoctor = "latency-doctor"

// SnapshotWaits is what the threads of a process that calls waited for, since the watch began: a ThreadWaits. The last
// one counts. That of the host source is counted from samples of the threads.
const SnapshotWaits = "waits"

// ThreadWaits is where the time of the threads of a process went, from when each was first seen to call. What is left
// of Ns they ran. All times are in nanoseconds, summed over the threads.
type ThreadWaits struct {
	Threads int   `json:"threads"`
	Ns      int64 `json:"ns"`
	RedisNs int64 `json:"redis_ns,omitempty"` // for a reply, from when its request was under way
	LoopNs  int64 `json:"loop_ns,omitempty"`  // before and after that, for the thread that sends and reads for it
	DialNs  int64 `json:"dial_ns,omitempty"`  // for a connection
	LockNs  int64 `json:"lock_ns,omitempty"`  // for another thread of the process, which woke it
	TimerNs int64 `json:"timer_ns,omitempty"` // by itself
	// LimitNs, from samples: up to a time limit, for another thread of the process or by itself
	LimitNs     int64 `json:"limit_ns,omitempty"`
	EventsNs    int64 `json:"events_ns,omitempty"` // for whatever comes first: epoll, poll, select, accept
	OthersNs    int64 `json:"others_ns,omitempty"` // in other system calls: pipes, files, children
	PeersNs     int64 `json:"peers_ns,omitempty"`  // for other services that it has connected to
	RunQueueNs  int64 `json:"run_queue_ns,omitempty"`
	ThrottledNs int64 `json:"throttled_ns,omitempty"`
	FrozenNs    int64 `json:"frozen_ns,omitempty"`
	BlockedNs   int64 `json:"blocked_ns,omitempty"` // on a disk or memory
	// Of TimerNs: pauses between two requests of a thread that were equal, how many and how long, and their command.
	Polls   int64  `json:"polls,omitempty"`
	PollsNs int64  `json:"polls_ns,omitempty"`
	PollOp  string `json:"poll_op,omitempty"`
	// Of event loops that read replies: times of at least 10 ms in which such a thread neither waited for events nor
	// read from a socket, how many, how long, and the longest since the watch began.
	Stalls   int64 `json:"stalls,omitempty"`
	StallsNs int64 `json:"stalls_ns,omitempty"`
	StallMax int64 `json:"stall_max_ns,omitempty"`
	// Outside are the longest waits of PeersNs, OthersNs and BlockedNs.
	Outside WaitList `json:"outside,omitempty"`
	// Asked, from the tap, are the requests to other services: how long they were under way, whatever the threads did
	// meanwhile. As many as Waits were answered.
	Asked WaitList `json:"asked,omitempty"`
	// NoLoop, from the tap: none of the threads ever waited for whatever comes first, as event loops do (epoll).
	NoLoop bool `json:"no_loop,omitempty"`
	// LoopTIDs, from the tap, are threads that do, a few of them.
	LoopTIDs []int `json:"loop_tids,omitempty"`
	// Others, from samples, are threads of the process that were not seen at a connection to a server.
	Others int `json:"others,omitempty"`
	// Assumed, from samples: no thread was seen at one. These are the threads that ran.
	Assumed bool `json:"assumed,omitempty"`
}

// WaitsFor is how long threads slept for one thing outside their process: another service, or a system call.
type WaitsFor struct {
	Address string `json:"address,omitempty"` // of a service: HOST:PORT, or UnixPeer
	// Call is a system call, with what it is about if that is no file: "write to its standard output, a pipe"
	Call   string `json:"call,omitempty"`
	File   string `json:"file,omitempty"`   // the file that it is about, without its directory,
	Files  bool   `json:"files,omitempty"`  // or one of them,
	Device string `json:"device,omitempty"` // and their block device
	Ns     int64  `json:"ns"`
	Waits  int64  `json:"waits"` // how many
}

// isSame reports whether both are about the same, whatever the files.
func (w WaitsFor) isSame(o WaitsFor) bool {
	return w.Address == o.Address && w.Call == o.Call && w.Device == o.Device
}

// Name is what threads slept for: "127.0.0.1:5432", "fsync of files such as audit.log on vda".
func (w WaitsFor) Name() string {
	if w.Address == UnixPeer {
		return "a service at a Unix socket"
	}
	name := w.Address + w.Call
	if said := inWords[w.Call]; said != "" {
		name = said
	}
	if w.File != "" {
		name += " of "
		if w.Files {
			name += "files such as "
		}
		name += w.File
	}
	if w.Device != "" {
		name += " on " + w.Device
	}
	return name
}

// inWords are system calls whose names say little.
var inWords = map[string]string{
	"wait4": "wait4 for a child process", "waitid": "waitid for a child process",
	"vfork": "vfork until the child process runs", "page fault": "page faults, for memory that is on a disk",
}

// UnixPeer is the address of services that are reached by a Unix socket.
const UnixPeer = "unix"

// WaitList is what threads slept for.
type WaitList []WaitsFor

const (
	// maxWaitList is how long the recorded list of a process is.
	maxWaitList = 12
	// maxWaitsTold things are told apart before. Others are in no list.
	maxWaitsTold = 1024
)

// Add adds sleeps for one thing.
func (l *WaitList) Add(w WaitsFor) {
	for i := range *l {
		if o := &(*l)[i]; o.isSame(w) {
			o.Ns += w.Ns
			o.Waits += w.Waits
			o.Files = o.Files || w.Files || o.File != w.File
			return
		}
	}
	if len(*l) < maxWaitsTold {
		*l = append(*l, w)
	}
}

// Keep puts the longest sleeps first, and drops others.
func (l *WaitList) Keep() {
	slices.SortFunc(*l, func(a, b WaitsFor) int {
		return cmp.Or(cmp.Compare(b.Ns, a.Ns), cmp.Compare(a.Address, b.Address), cmp.Compare(a.Call, b.Call))
	})
	*l = (*l)[:min(len(*l), maxWaitList)]
}

// since is what was added to a list since an earlier snapshot of it.
func (l WaitList) since(before WaitList) WaitList {
	l = slices.Clone(l)
	for _, b := range before {
		for i := range l {
			if l[i].isSame(b) {
				l[i].Ns -= b.Ns
				l[i].Waits -= b.Waits
			}
		}
	}
	l.Keep()
	return l
}

// ThreadWaitsOf reads the body of such a snapshot; a damaged one is as good as none.
func ThreadWaitsOf(body string) (w ThreadWaits) {
	if json.Unmarshal([]byte(body), &w) != nil {
		return ThreadWaits{}
	}
	return w
}

// Since is what was added to an earlier one.
func (w ThreadWaits) Since(before ThreadWaits) ThreadWaits {
	w.Ns -= before.Ns
	w.RedisNs -= before.RedisNs
	w.LoopNs -= before.LoopNs
	w.DialNs -= before.DialNs
	w.LockNs -= before.LockNs
	w.TimerNs -= before.TimerNs
	w.LimitNs -= before.LimitNs
	w.EventsNs -= before.EventsNs
	w.OthersNs -= before.OthersNs
	w.PeersNs -= before.PeersNs
	w.Outside = w.Outside.since(before.Outside)
	w.Asked = w.Asked.since(before.Asked)
	w.RunQueueNs -= before.RunQueueNs
	w.ThrottledNs -= before.ThrottledNs
	w.FrozenNs -= before.FrozenNs
	w.BlockedNs -= before.BlockedNs
	w.Polls -= before.Polls
	w.PollsNs -= before.PollsNs
	w.Stalls -= before.Stalls
	w.StallsNs -= before.StallsNs
	w.StallMax = min(w.StallMax, w.StallsNs) // the longest may have been before
	return w
}

// RunningNs is what is left.
func (w ThreadWaits) RunningNs() int64 {
	return max(0, w.Ns-w.RedisNs-w.LoopNs-w.DialNs-w.LockNs-w.TimerNs-w.LimitNs-w.EventsNs-w.OthersNs-w.PeersNs-
		w.RunQueueNs-w.ThrottledNs-w.FrozenNs-w.BlockedNs)
}

// SnapshotLibrary is what the calls of a Go program waited for in its client library, since that was hooked: a
// LibraryWaits. The last one counts.
const SnapshotLibrary = "library"

// LibraryWaits are the calls of a Go program by the functions of its client library. Times are in nanoseconds, summed
// over the calls; calls that had a connection opened are not among them.
type LibraryWaits struct {
	Ns          int64 `json:"ns"`                      // how long they were counted
	Calls       int64 `json:"calls"`                   // by functions that are known
	Others      int64 `json:"others,omitempty"`        // and other calls of the process
	CallsNs     int64 `json:"calls_ns"`                // from the request to the reply
	WaitedNs    int64 `json:"waited_ns"`               // before that, in the pool for a connection
	WaitedMaxNs int64 `json:"waited_max_ns,omitempty"` // the longest of these waits
	Longer      int64 `json:"longer,omitempty"`        // calls that took less than the wait before them
}

// LibraryWaitsOf reads the body of such a snapshot; a damaged one is as good as none.
func LibraryWaitsOf(body string) (w LibraryWaits) {
	if json.Unmarshal([]byte(body), &w) != nil {
		return LibraryWaits{}
	}
	return w
}

// Since is what was added to an earlier one. The longest wait may have been before.
func (w LibraryWaits) Since(before LibraryWaits) LibraryWaits {
	w.Ns -= before.Ns
	w.Calls -= before.Calls
	w.Others -= before.Others
	w.CallsNs -= before.CallsNs
	w.WaitedNs -= before.WaitedNs
	w.Longer -= before.Longer
	return w
}
