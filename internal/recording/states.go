package recording

// Actors and states of a segment, as far as their names do not say it:
//
//   - app lock-wait: before the call its goroutine waits for a lock of the program
//   - client receive: the reply is in the socket and not read yet, while the reading thread runs something else;
//     client off-cpu: the same while that thread sleeps
//   - client loop-wait: a thread waits for the one that sends its request and reads its reply, which has other things
//     to do
//   - server busy: the event loop serves other calls
//   - server blocked: the thread sleeps in a system call or page fault that cannot be interrupted
//   - server withheld: the main thread sleeps after it has read the call, and sends nothing: it keeps the call waiting
//     (CLIENT PAUSE, blocked writes, a blocking command before it on the connection)
//   - server ack-wait: WAIT or WAITAOF waits for replicas or the disk to confirm what was written, while the event loop
//     serves others
//   - server send: the main thread sleeps while the reply, or one before it on the connection, is sent in pieces as the
//     receiver takes it
//   - proxy forward: a proxy on this host has read the call and sleeps, waiting for its server
//   - network way: out or back, not known which; for calls whose ends were seen by two hosts (package join)
//   - unexplained: no source saw it
const (
	App         = "app"
	Client      = "client"
	Network     = "network"
	Server      = "server"
	Proxy       = "proxy"
	Nobody      = "unknown"
	PoolWait    = "pool-wait"
	LoopWait    = "loop-wait"
	LockWait    = "lock-wait"
	Dial        = "dial"
	TLS         = "tls"
	Handshake   = "handshake"
	RunQueue    = "run-queue"
	Out         = "out"
	Back        = "back"
	Way         = "way"
	Retransmit  = "retransmit"
	Throttled   = "throttled"
	Frozen      = "frozen"
	Busy        = "busy"
	Blocked     = "blocked"
	Exec        = "exec"
	Withheld    = "withheld"
	AckWait     = "ack-wait"
	Forward     = "forward"
	Send        = "send"
	Receive     = "receive"
	OffCPU      = "off-cpu"
	Unexplained = "unexplained"
)
