package recording

// Actors and states of a segment. Client Receive is the time from the reply in the socket to the read of it while the
// thread that reads ran something else, OffCPU while it slept. Server Busy is the event loop serving others, server
// Blocked the thread asleep in a system call or page fault that it cannot leave, server Withheld the main thread asleep
// after it had read the call, and nothing sent to the caller: it keeps the call waiting (CLIENT PAUSE, a block of
// writes, a command that blocks before it on the connection). Server Send is the main thread asleep while the reply, or
// one before it on the connection, went out piece by piece, as the receiver took it. Proxy Forward is the same of a
// proxy on this host: it had read the call and slept, waiting for the server behind it. Network Way is Out or Back, it
// is not known which: of calls whose ends two hosts saw (package join). Unexplained is what no source saw.
const (
	App         = "app"
	Client      = "client"
	Network     = "network"
	Server      = "server"
	Proxy       = "proxy"
	Nobody      = "unknown"
	PoolWait    = "pool-wait"
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
	Forward     = "forward"
	Send        = "send"
	Receive     = "receive"
	OffCPU      = "off-cpu"
	Unexplained = "unexplained"
)
