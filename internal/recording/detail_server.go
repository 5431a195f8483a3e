package recording

import "strings"

// SlowlogDetail is the Detail of an entry of one of the server's logs of commands: slowlog, large-request, large-reply.
// The server gives whole seconds: the command ended in [TimeNs, TimeNs+WindowNs) by slowpath's clock; DurationNs is
// that of the server, which only SLOWLOG has.
type SlowlogDetail struct {
	ID       int64  `json:"id"`
	Command  string `json:"command"` // upper case, with subcommand: "CLUSTER NODES"
	ArgCount int    `json:"arg_count"`
	ArgBytes int64  `json:"arg_bytes"` // total length of the arguments in SLOWLOG
	Client   string `json:"client,omitempty"`
	Name     string `json:"name,omitempty"`
	WindowNs int64  `json:"window_ns"`
	// Framework is set if the first key or pattern has the default form of a known framework's keys. The key itself is
	// not kept.
	Framework string `json:"framework,omitempty"`
	// Of large-request and large-reply: the length on the wire, and a hash of the first argument, mostly the key, by a
	// secret that slowpath forgets when it ends. Entries of one watch with the same key have the same hash.
	Bytes   int64  `json:"bytes,omitempty"`
	KeyHash string `json:"key_hash,omitempty"`
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
	Local            string `json:"local,omitempty"` // this end, as the tap names it
}

// BlindSpot is what could not be seen, why, and how to enable it.
type BlindSpot struct {
	What   string `json:"what"`
	Why    string `json:"why"`
	Enable string `json:"enable"`
	// Share is how much of the whole it is, from 0 to 1, where that is known.
	Share float64 `json:"share,omitempty"`
}

// Grant parts a command that gives a user rights, "ACL SETUSER NAME RULES", before the rules; false for another text.
func Grant(enable string) (command, rules string, ok bool) {
	rest, ok := strings.CutPrefix(enable, grantCommand)
	name, rules, given := strings.Cut(rest, " ")
	return grantCommand + name, rules, ok && given && name != ""
}

const grantCommand = "ACL SETUSER "

// MarkDetail is the Detail of mark.
type MarkDetail struct {
	Text string `json:"text"` // what somebody did, such as "deploy of shop 1.2.3"
}

// PackageDetail is the Detail of package.
type PackageDetail struct {
	AtNs int64  `json:"at_ns"` // when, by the log of the host; it may be before the recording
	How  string `json:"how"`   // install, upgrade, remove; written
	Name string `json:"name"`
	From string `json:"from,omitempty"` // versions
	To   string `json:"to,omitempty"`
}

// NetworkChangeDetail is the Detail of network-change.
type NetworkChangeDetail struct {
	What string `json:"what"`         // route, routing rule, queueing discipline, nftables rules
	How  string `json:"how"`          // added, removed, changed
	By   string `json:"by,omitempty"` // the process, "nft[812]"; nftables alone
}

// ServerProcess is the Detail of process-ended and process-found.
type ServerProcess struct {
	PID  int    `json:"pid"`
	Comm string `json:"comm"`
}

// SnapshotSlots is the server source's difference of two replies to CLUSTER SLOT-STATS, of a node; its body is a
// SlotStats.
const SnapshotSlots = "slot-stats"

// SlotStats is what the slots of a node had in the time before the snapshot.
type SlotStats struct {
	Ns      int64     `json:"ns"`       // how long
	Slots   int       `json:"slots"`    // of the node
	CPUUsec int64     `json:"cpu_usec"` // of commands with keys, in all slots
	Busiest []SlotUse `json:"busiest"`  // a part of the slots, those with the most time first
}

// SlotUse is what one slot had.
type SlotUse struct {
	Slot     int   `json:"slot"`
	CPUUsec  int64 `json:"cpu_usec"`
	InBytes  int64 `json:"in_bytes"`
	OutBytes int64 `json:"out_bytes"`
	Keys     int64 `json:"keys"` // that it has, at the end
}
