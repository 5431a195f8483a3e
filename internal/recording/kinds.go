package recording

// Kinds of events. Those of the host about a server's main thread have the names of states.
const (
	KindThrottled = "throttled" // host, subject node: its cgroup had used its CPU quota; Detail ThreadDetail
	KindRunQueue  = "run-queue" // host, subject node: main thread runnable, another task had the CPU
	KindFrozen    = "frozen"    // host, subject node: stopped by a signal, a debugger or a freezer cgroup
	KindBlocked   = "blocked"   // host, subject node: uninterruptible sleep; Detail names the system call
	KindBusy      = "busy"      // host, subject node: on the CPU without interruption
	KindSlowlog   = "slowlog"   // server, subject node: SLOWLOG entry; Detail SlowlogDetail
	// server, subject node: an entry of COMMANDLOG about a long request or reply; Detail SlowlogDetail
	KindLargeRequest = "large-request"
	KindLargeReply   = "large-reply"
	KindLatency      = "latency" // server, subject node: LATENCY HISTORY sample; Detail LatencyDetail
	// server, subject node: the fork of BGSAVE, BGREWRITEAOF or a full resync; Detail ForkDetail
	KindFork       = "fork"
	KindRestart    = "restart"     // server, subject node: run_id changed or uptime went back
	KindRoleChange = "role-change" // server, subject node
	// server, subject node: one poll of the server source, DurationNs from send to last reply
	KindPoll      = "poll"
	KindError     = "error"      // probe or server, subject node: a reply or network error; Detail ErrorDetail
	KindTCPInfo   = "tcp-info"   // probe, subject node: TCP_INFO of the socket of a slow call; Detail TCPDetail
	KindBlindSpot = "blind-spot" // any source; Detail BlindSpot
	KindUnseen    = "unseen"     // tap, recording: how much was missed or dropped; Detail Unseen
	KindUnwatched = "unwatched"  // recording: between two watches nothing was watched
	// host, subject node: the process of the server has ended; the process that listens there now; Detail ServerProcess
	KindProcessEnded = "process-ended"
	KindProcessFound = "process-found"
	KindMark         = "mark"    // watch, subject machine: somebody marked this time; Detail MarkDetail
	KindPackage      = "package" // host, subject machine: it was installed, upgraded or removed; Detail PackageDetail
	// host, subject machine: routes, queueing disciplines or nftables were changed; Detail NetworkChangeDetail
	KindNetworkChange = "network-change"
	// host, subject process:PID: a dial of a process that calls a server, to that server's port at another address, of
	// which no connection came; Detail UnansweredDial
	KindUnansweredDial = "unanswered-dial"
	KindNeighbours     = "neighbours" // host, subject node: processes on the server's CPUs; Detail []Neighbour
)

// Kinds of events of the tap. It also writes throttled, run-queue, frozen and blocked, of the threads that serve
// (subject node) and of those that call (subject process:PID): each event is one wait, exact in time, with Share 1.
const (
	// tap, subject node: one event-loop activity of a serving thread; Detail ActivityDetail
	KindActivity = "work"
	KindOpen     = "open"  // tap, subject node: a connection was made; Detail ConnDetail
	KindClose    = "close" // tap, subject node: a connection ended; Detail ConnDetail
	// tap, subject node: the commands of a new connection before its first real one; Detail HandshakeDetail
	KindHandshake  = "handshake"
	KindRetransmit = "retransmit" // tap, subject node: TCP retransmitted a segment; Detail RetransmitDetail
	// tap, subject node: from the send of a reply to a client at another address to its acknowledgement; Detail
	// AckDetail
	KindAcknowledged = "acknowledged"
	// tap (of a capture), subject node: from the request of a slow call to its acknowledgement by the server's kernel,
	// without data, before there was a reply; Detail RequestAckDetail
	KindRequestAck = "request-acknowledged"
	// tap (of a capture) and host, subject node: which segments between a client's host and the node arrived, and which
	// did not; Detail SegmentSizesDetail
	KindSegmentSizes = "segment-sizes"
	// tap, subject node: a function of the server itself ran long; Detail InternalDetail
	KindInternal = "internal"
	// tap, subject node: a blocking command (BLPOP, XREAD BLOCK, WAIT), at its reply; Detail BlockingCommandDetail
	KindBlockingCommand = "waiter"
	// tap, subject node: the last calls of a slow call's process to other nodes, read while it waited; Detail
	// OtherNodesDetail
	KindOtherNodes = "beside"
	// tap, subject process:PID: garbage collection of a client's runtime, of 1 ms or more; Detail CollectionDetail
	KindCollection = "collection"
	// tap, subject process:PID: an event loop of a client slept in a system call on something else than its events, for
	// 1 ms or more; Detail ThreadDetail
	KindElsewhere = "elsewhere"
	// tap, subject process:PID: a thread of a client slept until another one of its process woke it, for as long as a
	// slow call takes; Detail ThreadDetail
	KindLockWait = "lock-wait"
	// tap, subject process:PID: a DNS query of 1 ms or more, up to its answer or to the next try; Detail DNSQueryDetail
	KindDNSQuery = "lookup"
	// tap, subject node: a command that changed the server (Administers), at its reply; Detail AdminCommandDetail
	KindAdminCommand = "admin-command"
	// tap, subject node: the server's part of a slow call of slowpath itself; Detail ServedDetail
	KindServed = "served"
)
