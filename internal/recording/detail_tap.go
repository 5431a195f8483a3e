package recording

// ActivityDetail is the Detail of work: one event-loop activity, such as serving one read, while other ready
// connections wait. An empty Op is the loop's own work: timers, expiry, eviction, accepting, sending.
type ActivityDetail struct {
	Op       string `json:"op"`                // first command of the read, upper case, with its subcommand
	Calls    int    `json:"calls"`             // commands that the read held
	Args     int    `json:"args"`              // of the first, with the command itself
	Bytes    int64  `json:"bytes"`             // of the read; with Sends, of the reply that was sent
	Sends    bool   `json:"sends,omitempty"`   // the time was spent in one send system call
	Client   string `json:"client"`            // address of the connection
	Process  string `json:"process,omitempty"` // "redis-cli[1234]", where it is on this host
	TID      int    `json:"tid"`
	OnCPUNs  int64  `json:"on_cpu_ns"`          // for the rest of the duration the thread could not run, or slept
	Internal string `json:"internal,omitempty"` // the server's function, if it has symbols: activeExpireCycle
}

// CollectionDetail is the Detail of collection.
type CollectionDetail struct {
	TID     int    `json:"tid"`
	Runtime string `json:"runtime"` // whose USDT probes were hit: python, hotspot
}

// DNSQueryDetail is the Detail of lookup.
type DNSQueryDetail struct {
	Comm     string `json:"comm"`
	TID      int    `json:"tid,omitempty"`
	Server   string `json:"server,omitempty"`  // the address of the DNS server; empty if unknown
	Queries  int    `json:"questions"`         // queries sent on the socket; IPv4 and IPv6 count as two
	Answers  int    `json:"answers,omitempty"` // to them, by the end of the event
	Answered bool   `json:"answered"`          // false: it, or one of two, was repeated or given up
	// ServerAnswers is how often that server had answered a process of this host since the watch began.
	ServerAnswers int `json:"server_answers,omitempty"`
}

// InternalDetail is the Detail of internal.
type InternalDetail struct {
	Function string `json:"function"` // symbol of the server's binary
	What     string `json:"what"`     // what it does, in words
	TID      int    `json:"tid"`
}

// BlockingCommandDetail is the Detail of waiter. The event lasts from the request to the reply.
type BlockingCommandDetail struct {
	Op      string `json:"op"`
	Client  string `json:"client"`
	Process string `json:"process,omitempty"`
	Behind  int    `json:"behind"` // calls queued behind it on the same connection
}

// OtherNodesDetail is the Detail of beside: the last calls of a slow call's process to other nodes, read while the slow
// call waited. The event lasts from the last request that the process sent to the slow node (the slow call or one
// queued behind it) to the time of reading.
type OtherNodesDetail struct {
	Op      string          `json:"op"`
	Client  string          `json:"client"`
	Process string          `json:"process,omitempty"`
	Others  []OtherNodeCall `json:"others"` // by node; empty if it called no other node in the last seconds
}

// Beside is the last call of a process to another node.
type OtherNodeCall struct {
	Node string `json:"node"`
	// from the begin of the event to the send of this request; negative: it was sent before
	SentAfterNs int64 `json:"after_ns"`
	// to the read of its reply, the last one on that node; 0 if it still waits
	TookNs  int64 `json:"took_ns"`
	Waiting bool  `json:"waiting,omitempty"` // not answered yet
}

// AdminCommandDetail is the Detail of admin-command. The event lasts from the request to the reply. Its arguments are
// not kept: they may be secret.
type AdminCommandDetail struct {
	Op      string `json:"op"`
	Client  string `json:"client"`            // address of the connection
	Process string `json:"process,omitempty"` // "redis-cli[1234]", where it is on this host, and was known by then
}

// ServedDetail is the Detail of served. The event lasts from the first byte of the request in the server's socket to
// the end of the send of the reply.
type ServedDetail struct {
	Op     string       `json:"op"`
	Client string       `json:"client"` // slowpath's end of the connection
	Parts  []ServedPart `json:"parts"`  // disjoint; they add up to the event
}

// ServedPart is a part of a served call, with the names of Segment; times in nanoseconds from the begin of the event.
type ServedPart struct {
	Actor   string `json:"actor"`
	State   string `json:"state"`
	FromNs  int64  `json:"from_ns"`
	ToNs    int64  `json:"to_ns"`
	Culprit string `json:"culprit,omitempty"`
}

// NoReplyYet is the error of a call that waits for its reply when a watch ends.
const NoReplyYet = "no reply yet"

// LockOfProcess is the culprit of the sleep of a client's thread, with its reply in the socket, that another thread of
// its process ended.
const LockOfProcess = "another thread of its process"

// AsleepIn is between the name of an event loop and the system call in which it slept, in the culprit of a loop-wait.
const AsleepIn = " asleep in "

// NoAnswerFrom begins the culprit of the time that a caller lost with a dial to an address: no connection came of it.
const NoAnswerFrom = "no connection to "

// Sides of the tap's histograms besides Client and Server: calls at the clients' end whose threads waited longer than
// the call took, and how long these waited: all of them, but for those that had a connection opened first.
const (
	AwaitedCalls = "awaited"
	Operations   = "operation"
	Dialled      = "dialled"
)
