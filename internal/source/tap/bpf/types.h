/* What the programs keep, and what they report (struct *_event). bpf2go makes the Go side of these types, enums
 * included. Times are CLOCK_MONOTONIC nanoseconds. */
#ifndef SLOWPATH_TYPES_H
#define SLOWPATH_TYPES_H

/* States of a thread. Time on the CPU has no clock of its own: it is what remains of the wall-clock time. */
enum thread_state : u8 { RUNNABLE, THROTTLED, FROZEN, BLOCKED, ASLEEP, CLOCKS, ON_CPU = CLOCKS };

/* What a client's thread waits for while it sleeps. */
enum reason : u8 {
	FOR_REDIS,  /* a reply, from when its request was under way, */
	FOR_LOOP,   /* and before and after that, for the thread that sends and reads for it */
	FOR_DIAL,   /* a connection */
	FOR_LOCK,   /* another thread of its process, which woke it */
	FOR_TIMER,  /* nothing: it sleeps for a time that it set itself */
	FOR_EVENTS, /* whatever comes first: epoll, poll, select, accept */
	FOR_OTHERS, /* in another system call: pipes, files, children (see sleep_key), */
	FOR_PEERS,  /* or for what another service sends, which it has connected to */
	REASONS,
	REASON_MASK = 7,
};

/* waits is the time by reasons, in nanoseconds. */
struct waits {
	u64 ns[REASON_MASK + 1];
	u64 polls, polls_ns; /* of FOR_TIMER: between two requests that are equal, how often and how long, */
	u64 poll_op;         /* and their command */
	u64 stalls, stalls_ns, stall_max; /* of an event loop: times in which it did nothing of its own */
};

/* Which end of a connection. */
enum role : u8 { SERVER = 1, CLIENT = 2 };

/* What a port is to the programs. */
enum port_use : u8 {
	PORT_UNUSED,
	PORT_OF_SERVER, /* a server listens here, or is reached at this port */
	PORT_LEFT_OUT,  /* clients' connections from this port are not followed at the moment */
};

enum limit {
	MARKS = 8,        /* arrivals per connection that have not been read */
	BATCHES = 16,     /* reads per connection whose calls wait for replies */
	RING = 128,       /* entries of a connection's ring of requests that wait */
	SENTS = 8,        /* replies per connection that are not acknowledged */
	ENDS = 512,       /* ends of activities, per thread of a server, */
	END_SLOTS = 64,   /* and how many threads have them */
	THREADS = 4096,   /* watched at a time, by default, */
	CONNS = 20000,    /* connections, by default, */
	PAIRS = 20000,    /* and those that have a slot for what one end tells the other */
	NO_SLOT = -1,     /* of a thread or a pair */
	OPS = 128,        /* commands that are told apart, for one node */
	ERRORS = 1024,    /* kinds of error replies that are told apart, by command, end and first word */
	FUNCTIONS = 32,   /* of the server that are hooked */
	GO_PROCESSES = 32, /* Go programs whose client libraries are hooked at a time, */
	GO_FRAMES = 6,    /* and functions that are known of the holder of a lock */
	CARRY = 48,       /* bytes of a token that the next system call completes */
	WINDOW = 4096,    /* bytes that are parsed at a time, */
	MASK = 8191,      /* and a mask for places among them, and behind */
};

/* Longest command name that is kept, and longest subcommand. */
enum { NAME = 16 };

/* The first calls of a new connection are reported whatever they took: they are its handshake. */
enum { HANDSHAKE_CALLS = 8 };

/* Calls one after the other are a chain from so many on. Bound: guess. */
enum { CHAIN_CALLS = 10 };

/* A sleep is hardly longer than a call up to so many times its time. Bound: guess. */
enum { SOON_CALLS = 4 };

/* Who asks at all asks for at least one of so many calls. Bound: guess. */
enum { SOMETIMES = 4 };

/* So many equal requests or replies of one system call are compared at a time. */
enum { SAME = 32 };

enum { REPLY_OFF = 1, REPLY_SKIP = 2 };

/* Types of TLS records, the first byte; the second is that of the version. */
enum {
	TLS_CHANGE_CIPHER = 20, /* the least */
	TLS_HANDSHAKE = 22,
	TLS_DATA = 23,
	TLS_VERSION = 3,
	TLS_HEADER = 5,
	TLS_RECORD_MAX = 16384 + 2048, /* bytes behind the header (RFC 5246, 6.2.3) */
	/* From TLS 1.3 on the type is sealed, too: a record has its content, one byte of type, and a tag of 16 bytes
	 * (RFC 8446, 5.2). An alert has 2 bytes, Finished has 4 and a hash. */
	TLS_SEALED_ALERT = 2 + 1 + 16,
	TLS_SEALED_FINISHED_256 = 4 + 32 + 1 + 16,
	TLS_SEALED_FINISHED_384 = 4 + 48 + 1 + 16,
};

/* How far a connection under TLS is (conn.tls). Up to TLS 1.2 the types of all records are visible. From TLS 1.3 on
 * the server's first sealed records, and those of the client up to its Finished, are of the handshake. */
enum tls_phase : u8 {
	NO_TLS,
	TLS_OPENING,
	TLS_SERVER_SEALED, /* the server sends sealed records, before any of the client's: it is TLS 1.3; */
	TLS_CLIENT_SEALED, /* so does the client; its Finished was not seen */
	TLS_OPEN,          /* sealed records are requests and replies */
};

/* So many bytes of plaintext are parsed at a time: "$16\r\n" in its longest form, and a name. */
enum { TOKEN = 32 };

/* After so many nanoseconds without a byte, parsing of a connection whose order is not known starts again. */
enum { RESYNC_PAUSE_NS = 1000000000 };

/* So many exchanges, one call after the other and none faster than the least round trip, show a client that waits for
 * each reply. */
enum { EXCHANGES = 16 };

/* From so many bytes, the time of a send system call is attributed to the sending. */
enum { BIG_SEND = 16384 };

/* So many bytes of a request tell it from others. */
enum { PRINT = 64 };

/* The port of Redis Sentinel: who asks it dials a server next. */
enum { SENTINEL = 26379 };

/* Rates are per tick of 2^TICK_SHIFT ns. */
enum tick { TICK_SHIFT = 20 };

struct clocks {
	u64 ns[CLOCKS];
};

/* activity is what a server's thread did between one socket event and the next: serve one read, or (conn 0) its own
 * work. */
struct activity {
	u64 from, to;
	u64 conn;        /* cookie of the socket it served */
	u64 name[2];     /* first command of the read */
	u64 sub;
	struct clocks clk_from, clk_to;
	u8 raddr[16];
	u16 rport, lport;
	u32 calls;       /* commands in it */
	u32 bytes;       /* read, or sent */
	u32 args;        /* of the first command */
	u32 sends;       /* it is the sending of a reply */
	u32 net;         /* number of the network namespace, where client and server have the same address; else 0 */
	u32 others;      /* reads meanwhile from connections that are left out; while it is under way: see others_here */
};

/* activity_end is kept until the replies of the activity are sent. */
struct activity_end {
	u64 to;
	struct clocks clk;
	u32 number;
	u32 unused;
};

struct ends {
	struct activity_end at[ENDS];
};

/* phase of a thread's activity */
enum phase { NO_ACTIVITY, UNDER_WAY, ENDED_ASLEEP /* it ended when the thread fell asleep */ };

/* open_file is what a thread has open under the number that it gave a system call. It is noted while the thread is
 * there: a server opens and closes its log for each line. */
struct open_file {
	u32 device; /* as the kernel has it: 12 bits of major, 20 of minor number */
	u16 mode;   /* type and rights, 0: nothing is open there */
	u8 name[34];
};

struct addr {
	u16 family, lport, rport;
	enum role role;
	u8 tls;
	u8 laddr[16], raddr[16];
	u32 net;
	u16 node;
	u8 observer;
	u8 unused;
};

/* last_call is a call whose reply was read. */
struct last_call {
	u64 from, to;
	u64 print;
	u64 conn; /* cookie */
	u64 locked_ns; /* of a thread that called by itself: it slept so long in futexes before it read the reply */
	struct addr addr;
	u32 op, unused;
};

/* What the hooks of a Go program say by their cookie. */
enum go_hook : u64 {
	GO_ENTER = 1, /* a goroutine begins an operation of its client library: a call, or a pipeline; */
	GO_TAKE,      /* it begins to get a connection for one; */
	GO_GOT,       /* the library's pool has let it have one; */
	GO_LOCK,      /* it waits for a lock of the program (sync.Mutex, sync.RWMutex), */
	GO_WOKEN,     /* and has been woken: it has the lock, or waits for it again; */
	GO_UNLOCK,    /* it gives a lock back that others wait for */
};

/* go_operation is the operation of a goroutine. */
struct go_operation {
	u64 from;     /* when it began; 0: it is over, */
	u64 got;      /* when the pool let it have its connection; 0: not seen, */
	u64 answered; /* and when the first reply was read; 0: not yet */
	u64 takes;    /* so far it only gets a connection */
	u64 asked;    /* since then its goroutine has waited for a lock, outside operations; 0: for none, */
	u64 locked;   /* until then; or of an operation that began with that wait: its end */
	u64 waits;    /* it waits for the lock now: */
	u64 lock;     /* its address; */
	u64 holder[GO_FRAMES]; /* and where another one gave it back, from the innermost function on */
};

/* go_lock is a lock that goroutines wait for which call. */
struct go_lock {
	u64 since;    /* one of them has waited since then. The lock was */
	u64 released; /* given back last then, while others waited. */
	u64 held, held_to; /* The longest time that one held it, and when that one gave it back, */
	u64 holder[GO_FRAMES]; /* and where */
};

/* go_process is a Go program whose client library is hooked: sums since then. */
struct go_process {
	u64 hits;     /* of its hooks */
	u64 calls;    /* of its goroutines' operations, */
	u64 calls_ns; /* what they took, */
	u64 waited_ns, waited_max; /* and what their goroutines had waited for the pool before; */
	u64 waits;    /* how many of them waited longer than the call took; */
	u64 others;   /* and its other calls */
};

/* process_waits are those of threads that have ended. */
struct process_waits {
	u64 threads;
	u64 ns; /* from when their clocks were started to their ends */
	struct clocks clk;
	struct waits waits;
};

/* peer is another service that threads of clients have connected to. */
struct peer_key {
	u8 addr[16];
	u32 tgid;
	u16 port, family; /* AF_UNIX: of neither an address nor a port */
};

struct peer {
	u64 ns;    /* how long they slept until it sent something, */
	u64 waits; /* and how often */
	u64 flight_ns; /* how long requests were under way, whatever the threads did meanwhile, */
	u64 requests;  /* and how many */
};

/* peer_request is one that a client has sent to another service on a connection, and not read from since. */
struct peer_request {
	u64 since; /* when the first byte was sent, 0: there is none */
	u32 tgid, unused;
};

/* epoll_key is the descriptor of an epoll. */
struct epoll_key {
	u32 tgid; /* in the root namespace */
	s32 fd;
};

enum { BY_SEVERAL = -1 };

/* sleep_key is a system call in which threads of a client slept, and what kind of file it was about. */
struct sleep_key {
	u32 tgid;
	s32 syscall; /* -1: a page fault */
	s32 fd;      /* of the file; ALL_OTHERS: above that of standard error */
	u32 device;
	u32 type; /* its bits of the mode, 0: it is not about a file */
};

enum descriptor { ALL_OTHERS = 3 };

struct sleeps {
	u64 ns, waits;
	u32 by_tgid;           /* who ended the last one: mostly the other end of a pipe, */
	u8 by_comm[16];        /* and its name */
	struct open_file file; /* the first that it was about, */
	u32 files;             /* and whether it was about others, too */
};

/* Who calls in a process: its threads, of which one runs at a time where an interpreter has a lock. */
enum calling : u8 { THREADS_CALL = 1, ONE_AT_A_TIME };

/* caller is what is kept of a client's thread. */
struct caller {
	u64 began;   /* when its clocks were started */
	u64 ran;     /* its time on a CPU by when it last began to run after a sleep; */
	u64 idle;    /* when it did so after a sleep that was not for a lock; */
	u64 events;  /* when the last event came that it waited for, */
	u64 awake;   /* and the one before; */
	u64 acted;   /* when a loop last waited for events, or read from a socket; */
	u64 asked;   /* and when it last woke a thread that waited for events */
	struct waits waits;
	u64 lock_since; /* when it began to wait for other threads; between such sleeps it has hardly run, */
	u64 lock_ns;   /* how long it slept there at most, */
	u64 wakers;    /* which of them woke it there, as bits, */
	u64 woke;      /* and from its present sleep; */
	u64 futex_ns;  /* sleeps in futexes since its last other sleep or call; */
	u64 wanted;    /* when it began to wait for the connection that it has now, 0: it did not */
	u64 read_ran;  /* its time on a CPU by its last read of a reply, */
	u64 had_lock;  /* and when it had an interpreter's lock after that, 0: it did not wait for one */
	u64 slept_from, slept_to; /* its last sleep, */
	u64 timer_ns;  /* and all of FOR_TIMER since its last call, */
	u64 print;     /* whose request this was (see fingerprint), */
	struct last_call last; /* and of a loop the call whose reply it read last */
	struct peer_key peer; /* whom it has asked, and not read from since, if that is no server of Redis */
	u32 asks, helped; /* how often it asked a loop, and how often one that had read a reply ended its sleep; */
	u32 soon;    /* of these, sleeps that were hardly longer than the call; */
	s32 lock_at; /* the futex at which it waited for other threads */
	s32 epoll;   /* of a loop: one more than the descriptor whose events it last waited for */
	u8 loop;     /* it waits for events, */
	u8 away;     /* and sleeps in another system call */
	u8 why;      /* enum reason of its present sleep, or of the last */
	u8 dials;    /* it has sent a SYN, and not slept since */
	u8 own;      /* another thread of its process ended its sleep */
	u8 between;  /* its last sleep was not for another thread, */
	u8 repeats;  /* its last request was equal to the one before */
	u8 has_read; /* a reply, and done nothing since */
	u8 interpreter; /* it sleeps, or last slept, for an interpreter's lock */
};

struct thread {
	u32 seq; /* odd while it is being written */
	u32 state;
	u64 since;   /* when the state began */
	u64 waking;  /* last time somebody woke it */
	u64 held_in; /* while throttled: address of its cfs_rq, */
	u64 held_ns; /* and the throttled time of that when it began */
	u64 woken;   /* a client's: the last time that another thread woke it (futex), */
	u64 wakes;   /* and which threads it woke since it last used a connection, as bits */
	struct caller caller;
	struct clocks clk;
	u32 tid, tgid; /* as slowpath's /proc has them, 0: not there */
	u32 pid;     /* its thread number in the root namespace */
	u32 unused;
	s32 syscall; /* while blocked: number of the system call, -1 for a page fault, */
	s32 arg;     /* its first argument, */
	struct open_file file; /* and what it has open under that number */
	u32 server;  /* it serves */
	u32 number;  /* of the last read that it served */
	u32 open;    /* enum phase of the activity */
	u32 ends;    /* slot in ends, from 1 on, which stays with this thread's slot; 0: none */
	struct activity activity;
	u64 entered[FUNCTIONS]; /* when it entered a function of the server */
	u64 ssl;     /* while it is in SSL_read or SSL_write: the object, */
	u64 ssl_buf; /* the plaintext, */
	u64 ssl_len; /* and where its length will be written */
};

/* mark: the bytes up to seq came into the socket at ns. */
struct mark {
	u64 ns;
	struct clocks clk;
	u32 seq;
	u32 unused;
};

/* batch is one read of a server: all its calls share these times. */
struct batch {
	u64 arrived, read;
	struct clocks clk_arrived, clk_read;
	u32 activity; /* its number */
	u32 slot;
};

/* pending is a run of equal requests that wait for their replies. */
struct pending {
	u64 start;
	u32 bytes;
	u32 count;
	u32 seq;  /* of the byte after the (last) request */
	u16 op;
	u16 batch;
	u16 args;
	u16 flags;
	u32 unused;
};

/* stream is the parser's place in one direction of a connection. */
struct stream {
	u64 skip;      /* bytes of a bulk string that are still to come */
	u64 bytes;     /* of the message so far */
	u32 left;      /* elements of the message that are still to come */
	u32 args;
	u8 line;       /* within a line of which only the end matters */
	u8 carry_len;  /* bytes of an incomplete token */
	u8 push;       /* the message is an out-of-band push */
	u8 error;      /* the message is an error reply */
	u8 want;       /* enum wanted: what the next bulk string is */
	u8 started;    /* the message in progress has begun */
	u8 unused;
	u8 carry[CARRY];
};

/* What the next bulk string of a request is. */
enum wanted {
	WANT_NOTHING,
	WANT_NAME,
	WANT_SUBCOMMAND,
	WANT_ARGUMENT, /* of CLIENT REPLY or SETINFO, */
	WANT_LIBRARY,  /* and what a client library says of itself by the latter */
	WANT_OPTION,   /* of XREAD or XREADGROUP, up to STREAMS, */
	WANT_OPTION_AFTER_ONE, /* or after one value of the option before it, */
	WANT_OPTION_AFTER_TWO, /* or two */
};

/* shape is a request that came before, as far as another must have the same bytes to be parsed like it: everything up
 * to the first byte of the key, and what is between the key and the value. Most requests of a connection have the shape
 * of the one before. */
struct shape {
	u64 head[4], head_mask[4];
	u64 tail[2], tail_mask[2];
	u32 tail_at; /* 0: no value */
	u32 len;     /* of the whole request; 0: no shape is known */
	u32 args;
	u32 unused;
};

/* reply_shape is the same for a reply that is one line or one bulk string. */
struct reply_shape {
	u64 head, mask;
	u32 len;
	u32 unused;
};

/* sent is the end of a reply on its way to a client at another address, until it is acknowledged. */
struct sent {
	u64 ns;            /* when it was sent; 0: acknowledged at once */
	u64 nearly;        /* when all but its last segment was acknowledged; 0: never seen */
	u32 seq;           /* of the byte after it */
	u32 unacked;       /* bytes up to there that were not acknowledged when it was sent */
	u32 retransmitted; /* segments of the connection by then */
	u16 slow;          /* the call was slow at the server, */
	u16 zero_window;   /* and its client took no more bytes for a while before the send */
};

/* between is a connection's addresses as one of its ends has them. */
struct between {
	u8 laddr[16], raddr[16];
	u16 family, lport, rport;
	u16 unused;
} __attribute__((aligned(8))); /* addresses are compared as words */

/* chain is calls of one command that a client made one after the other: each was sent soon after the reply to the one
 * before. */
struct chain {
	u64 since, until; /* when the first was sent, and the last was answered */
	u64 in_flight_ns; /* what they took */
	u32 calls, op;
};

/* chains are those of a connection that ended, and together took as long as a slow call. */
struct chains {
	u64 count, calls;
	u64 ns;           /* from the first request of each to its last reply, */
	u64 in_flight_ns; /* and of that with a call in flight */
	u32 op, unused;   /* of the last */
};

enum transacts : u8 { NO_TRANSACTION, WATCHES, ENDS_WATCH, EXECUTES };

/* transactions are those of a connection that watched keys, up to the reply to EXEC. */
struct transactions {
	u64 watched; /* when the first WATCH of the one under way was sent, or came; 0: there is none */
	u64 done;
	u64 failed;    /* of them: another client had changed what they watched. EXEC is answered by null */
	u64 failed_ns; /* what those took, from WATCH on */
};

struct conn {
	u64 cookie;
	u64 opened;       /* 0: it was there before */
	u64 dialled;      /* client: when the SYN was sent */
	u64 send_start;   /* when the send system call in progress began */
	u64 last_in, last_out;
	u64 calls;        /* completed, */
	u64 no_calls;     /* and how many of them are F_NO_CALL */
	u64 in_flight_ns, in_flight_since;
	u64 idle_ns;      /* client: from a reply to the next send, nothing in flight */
	u64 last_ns;      /* client: what the last call took, */
	u64 prompt;       /* and how often the next was sent within a quarter of that */
	struct chain chain; /* client: that its last call belongs to, */
	struct chains chains; /* and those before */
	struct transactions transactions;
	u64 req_first;    /* when the first byte of the request in progress came, or was sent; 0: not known */
	u64 name[2];
	u64 sub, arg;
	u64 ssl;          /* TLS: the library's object that read or wrote the turn in progress; 0: not known */
	u64 error_name[2]; /* first word of the error reply in progress; 0: it is no name */
	u64 memo[2];      /* the name that op_of was last asked for, */
	u64 memo_sub;
	u64 print;        /* of the last request that was read, or sent; 0: not known */
	u64 replied_from; /* client: when the call began whose reply was just read, 0: none; */
	u32 replied_op;   /* and its command */
	u32 unused3;
	u64 published;    /* last status event */
	u64 peer_closed;  /* when the FIN of the peer came; 0: it did not */
	u64 peer_idle_ns; /* and how long nothing had been sent either way by then */
	u64 idle_max;     /* client: the longest part of idle_ns since the last status event */
	u64 silent_from, silent_to; /* server: last time it sent nothing for slow_ns, with no rest of a reply to send */
	u64 partial;      /* server: last send that ended within a reply */
	u32 memo_op;      /* and its number */
	u32 slot;         /* thread that read last */
	u32 tid, tgid;
	u32 head, tail;   /* of the ring: [head, tail) wait */
	u32 outstanding;
	u32 blocking;     /* of these, requests that block by design: they have no part in in_flight_ns */
	u32 peer_waiting; /* requests without a reply when the FIN of the peer came */
	u32 batch_no;
	u32 mark_head, mark_tail;
	u32 pair;
	u32 requested_seq; /* server: TCP sequence number behind the last request that was read */
	u32 acked;        /* server: TCP sequence number up to which its client acknowledged */
	u32 sent_head, sent_tail;
	u64 marks_full;   /* when bytes last came for which no mark was left */
	u64 zero_window;  /* server: when its client last said that it takes no more bytes */
	u32 node;         /* see nodes.h */
	u32 net;          /* number of its network namespace */
	u32 in_seq, out_seq; /* TCP sequence numbers behind what was read and sent, */
	struct between at;
	u8 in_known, out_known; /* where these are known */
	u8 node_checked;  /* server: its process was looked at, too */
	u8 observer;      /* enum observer */
	u8 announces;     /* the request in progress has the name of an observer */
	u8 role;
	u8 aligned;       /* it is known which reply belongs to which request */
	u8 tls;           /* enum tls_phase */
	u8 ignore;        /* replication, MONITOR, subscriber: no calls */
	u8 reply_off;     /* CLIENT REPLY: REPLY_OFF, REPLY_SKIP (the next has none) */
	u8 exchanges;     /* seen without contradiction while not aligned */
	u8 strict;        /* all its replies are parsed */
	u8 alert;         /* TLS: the request in flight has 2 bytes: without a reply it was an alert */
	u8 may_block;     /* the command of memo_op is one that waits by design, */
	u8 administers;   /* or changes the server, */
	u8 transacts;     /* enum transacts: or is of a transaction, */
	u8 walks;         /* or of a walk */
	u8 nagle;         /* enum nagle of this end's socket */
	u8 tickets;       /* session tickets (TLS 1.3) may pass before the reply to the next request */
	u8 light;         /* client: the server's end, on this host, is watched, and parses for both */
	u8 ordinary;      /* the last request has exactly one reply, and changes nothing for others */
	u8 queued;        /* client: how many more threads of late were woken by the one that gave it back than were not */
	u8 remote;        /* server: its client has another address, */
	u8 acks_seen;     /* and acknowledgements of it are seen: acked is known */
	u8 other_caller;  /* client: the goroutine that uses it is not the one that read from it before */
	struct stream req, rep;
	struct shape shape;
	struct reply_shape reply_shape;
	u64 turns;        /* client: how often another thread used it than before, */
	u64 handed;       /* how often it was handed over (see handovers.h), */
	u64 waited_ns, waited_max; /* how long those who got it had waited, */
	u64 kept_ns;      /* and how long those who gave it had kept it after their last reply, */
	u64 served;       /* and which threads those woke that used it, as bits */
	u32 slot_before;  /* client: the thread that used it before the one that read last */
	u32 go_calls;     /* of a Go program whose client library is hooked: calls up to its last read, */
	u64 g;            /* and the goroutine that read then */
	struct mark marks[MARKS];
	struct sent sent[SENTS];
	struct batch batches[BATCHES];
	struct pending ring[RING];
};

/* command is what is known of a request under TLS. */
struct command {
	u64 name[2];
	u64 sub;
	u32 args;
	u32 blocks;
};

/* tls_parser is the parser's place in the plaintext of a connection under TLS, and the requests of its turn. */
struct tls_parser {
	u64 conn;             /* cookie */
	struct command first; /* request of the turn, */
	struct command next;  /* and the one in progress */
	u64 skip;             /* bytes of a bulk string that are still to come */
	u32 left;             /* elements of the request that are still to come */
	u32 calls;            /* requests of the turn */
	u8 want;              /* enum wanted */
	u8 sure;              /* the place is known */
	u8 turn;              /* the next plaintext is the first of its turn */
	u8 token_len;         /* bytes of an incomplete token */
	u32 unused;
	u8 token[3 * TOKEN];  /* one third is used; reading a name may reach beyond, the rest is for old verifiers */
};

/* key of an op: the same command of two nodes has two numbers */
struct op_key {
	u64 name[2];
	u64 sub;
	u64 node;
};

/* Who watches by a connection, and is no user of the server: slowpath itself, or another one. */
enum observer { NO_OBSERVER, OWN, OTHER };

/* key of the counts of error replies: the first word of the error, and whose reply it was */
struct error_key {
	u64 name[2];
	u32 op;
	u32 role;
};

/* How far the server's end has answered what it read (pair.settled). */
enum settled {
	NOT_SETTLED,
	ALL_ANSWERED,
	ALL_ANSWERED_ALIGNED, /* and it is known which reply belongs to which request */
};

/* published by the server's end of a connection for the client's end on the same host, at each send */
struct pair {
	u32 seq_from, seq_to; /* requests that this send answers end within (seq_from, seq_to] */
	u64 arrived, complete, read, done, send; /* first and last byte in the socket, read, end of own work, sent */
	struct clocks clk_arrived, clk_read, clk_done, clk_send;
	u32 tid, tgid;
	u32 client;      /* the client's end is watched too */
	u32 replied_seq; /* TCP sequence number behind what was sent */
	u32 settled;     /* enum settled */
	u32 requested_seq; /* TCP sequence number behind what was read */
	u64 rep_bytes;
	u64 print;       /* see fingerprint */
	u32 req_bytes, calls;
	u32 no_calls;    /* how many of calls are F_NO_CALL */
	u16 op, args;
	u32 slot;        /* of the client's thread, and its clocks at send */
	u32 tls;
	u32 split;       /* the clocks are known; they are not copied for a call that was short at the server */
	u32 observer;    /* enum observer */
	u32 flags;       /* F_QUIET, F_PIECES, and those of F_NO_TIME */
	u32 refs;        /* ends that have it */
	u32 ambiguous;   /* connections of several namespaces have its addresses: nothing of it is used */
	u64 ends[2];     /* cookies of the server's connection and the client's */
	struct clocks clk_client;
	/* The first call whose reply the client had not read when the server sent another one, 0: there is none. A client
	 * with an event loop may send requests before it reads the replies to those before. */
	u64 unread_arrived, unread_send;
	u32 unread_calls; /* the server's calls with it, */
	u32 read_calls;   /* and those whose replies the client has read, as far as they had been published by then */
	u32 read_seq;     /* TCP sequence number behind what it has read, */
	u32 has_read;     /* if it has read anything */
};

enum event_type : u8 {
	EV_CALL = 1,
	EV_ACTIVITY,
	EV_OFFCPU,
	EV_OPEN,
	EV_CLOSE,
	EV_STATUS,
	EV_RETRANS,
	EV_FUNCTION,
	EV_ACKED,
	EV_DNS,
	EV_COLLECTION,
	EV_PROGRAM,
	EV_OPERATION,
	EV_NOT_DIALLED,
	EV_STALLED,
};

enum call_flag : u16 {
	F_SAMPLED = 1, /* not slow, one of the sample */
	F_MERGED = 2,  /* the ring was full: it shares an entry with other calls */
	F_FRESH = 4,   /* reported only because its connection is new, or F_ADMIN */
	F_ERROR = 8,
	F_TLS = 16,
	F_PAIRED = 32, /* pair has what the server's end knows */
	/* Between the read of the request and its reply the server */
	F_QUIET = 64,   /* sent nothing on the connection, and had no rest of a reply to send; */
	F_PIECES = 128, /* sent this reply, or one before it, in pieces. */
	F_BLOCKING = 256, /* it waits by design: it is neither slow nor usual */
	F_OPENING = 512, /* a flight of a TLS handshake */
	F_UNSURE = 1024, /* it is not known that this is the reply to this request */
	F_ADMIN = 2048, /* it changes the server: see administers */
	F_EXEC = 4096,
	F_WALK = 8192, /* it goes on where the reply before said: see walks */
	F_UNREAD = 16384, /* see report_light; in no report */
	F_NO_CALL = F_BLOCKING | F_OPENING,
	F_NO_TIME = F_NO_CALL | F_UNSURE, /* in no histogram */
};

struct call_event {
	enum event_type type;
	enum role role;
	enum call_flag flags;
	u32 tid, tgid;
	u16 op;
	u16 args;
	struct addr addr;
	u64 conn;
	u64 number;      /* of the call on its connection */
	u64 rep_bytes;
	u32 req_bytes;
	u32 seq;         /* of the byte after the request */
	u32 ahead;       /* calls in flight on the connection when it completed, this one included */
	u32 unused;
	/* server: first byte arrived, read, own work done, reply sent.
	 * client: send began, sent, reply arrived, reply read. */
	u64 at[4];
	struct clocks clk[4];
	u64 complete;     /* server: last byte arrived, which is the time of clk[0] */
	u64 locked_ns;    /* client: its thread slept so long in futexes before it read the reply */
	struct pair pair; /* client with F_PAIRED: what the server's end knows */
	u8 comm[16];
};

struct activity_event {
	enum event_type type;
	u8 unused[3];
	u32 tid, tgid;
	u32 unused2;
	struct activity activity;
	u8 comm[16];
};

struct offcpu_event {
	enum event_type type;
	enum thread_state state;
	u8 by_outside; /* of slowpath's PID namespace: it has no number */
	u8 away;       /* an event loop, elsewhere than in its wait for events */
	u32 tid, tgid;
	s32 syscall;
	u64 from, to;
	u32 by_tid, by_tgid; /* run queue: who had the CPU last */
	s32 arg;             /* blocked: first argument of the system call, */
	struct open_file file; /* and of a server what it has open under that number */
	u32 unused2;
	u8 comm[16];
	u8 by_comm[16];
};

enum closed_by : u8 { CLOSED_BY_NEITHER, CLOSED_BY_THIS_END, CLOSED_BY_PEER };

/* Whether the kernel holds back a small segment while another is not acknowledged (RFC 896). */
enum nagle : u8 { NAGLE_UNKNOWN, NAGLE_ON, NAGLE_OFF };

/* open, close and status of a connection */
struct conn_event {
	enum event_type type;
	enum role role;
	u8 aligned;
	enum closed_by closed_by;
	u32 tid, tgid;
	u32 outstanding;
	u16 error;             /* close: sk_err, */
	enum tcp_state state;  /* and the state before */
	enum nagle nagle;
	u16 op, args;          /* close: the first request that had no reply, */
	u32 req_bytes;         /* and its length */
	u16 blocking;          /* and whether it blocks by design; */
	u16 peer_waiting;      /* how many had none when the FIN of the peer came, at most 65535 */
	struct addr addr;
	u64 conn;
	u64 now;
	u64 opened, dialled;
	u64 last_in, last_out;
	u64 peer_closed, peer_idle_ns;
	u64 calls;
	u64 no_calls;
	u64 in_flight_ns;
	u64 idle_ns, idle_max, prompt;
	u64 turns, handed, waited_ns, waited_max, kept_ns, served;
	struct chains chains;
	struct transactions transactions;
	u8 comm[16];
};

struct retrans_event {
	enum event_type type;
	enum tcp_state state;
	enum tcp_ca_state ca_state; /* what the sender takes the segment for */
	u8 backoff;       /* how often its timer has run out before, one after the other */
	u32 total;
	struct addr addr;
	u64 now;
	u64 last_out;     /* 0: this end's sends are not followed */
	u32 seq, unacked; /* bytes */
	u32 rto_us;       /* the first wait of its timer, computed from its round trips */
	u32 dups;         /* segments of this end that the peer received twice (DSACK), so far */
};

/* acked_event: a reply was acknowledged late, or that of a slow call was acknowledged. */
struct acked_event {
	enum event_type type;
	u8 zero_window;    /* since the request its client took no more bytes for a while */
	u16 unused;
	u32 tgid;
	struct addr addr;
	u64 conn;
	u64 from, to;
	u64 sure;          /* ns of it that no delayed acknowledgement explains */
	u32 unacked;       /* bytes, when it was sent */
	u32 retransmitted; /* segments meanwhile */
	u32 rtt_min_us;    /* least round trip of the connection in the last minutes; 0: not known */
	u32 unused2;
};

/* function_event: a thread of the server returned from a function of its own that is hooked. */
struct function_event {
	enum event_type type;
	u8 which;
	u16 unused;
	u32 tid, tgid;
	u32 unused2;
	u64 from, to;
};

/* operation_event: a thread waited longer than its call took: until another one, which waits for events, had read the
 * reply; or for a connection. So may a goroutine. */
struct operation_event {
	enum event_type type;
	u8 unused[3];
	u32 tid, tgid;
	u32 loop_tid; /* 0: none */
	u64 from, to; /* call.to: from then on it waited for an interpreter's lock */
	u64 got; /* until then it waited for a connection that others used; 0: that is not known */
	u64 locked; /* until then, before that, it waited for a lock of the program; 0: for none, */
	u64 holder[GO_FRAMES]; /* which another one gave back here; 0: that is not known */
	u64 loop_awake; /* since then that thread had events to serve, when it sent the request */
	struct last_call call;
	u8 loop_comm[16];
};

/* not_dialled_event: no connection came of a dial to a port of a server, at an address that is not watched. */
struct not_dialled_event {
	enum event_type type;
	u8 unused[3];
	u32 tid, tgid;
	u32 rport;
	u8 raddr[16];
	u64 from, to;
};

/* stalled_event: an event loop of a process did nothing of its own for long, for the first time. */
struct stalled_event {
	enum event_type type;
	u8 unused[3];
	u32 tgid;
};

/* dns_event: a process sent a DNS query, or read its answer. */
struct dns_event {
	enum event_type type;
	u8 answer;
	u16 port; /* the socket's own: its memory is used again for another one */
	u32 tgid, tid;
	u64 now;
	u64 sock; /* tells apart sockets that are open at the same time */
	u8 comm[16];
	u8 server[16]; /* its address; IPv4 as mapped into IPv6 */
};

/* collection_event: a runtime began to collect garbage, or ended. */
struct collection_event {
	enum event_type type;
	u8 ended;
	u16 unused;
	u32 tid, tgid;
	u32 unused2;
	u64 now;
};

/* conn_snapshot: the last exchange of a connection, as its client's end knows it; or the last request that its server's
 * end has not answered. */
struct program_event {
	enum event_type type;
	u8 unused[3];
	u32 tgid, uid;
	u8 comm[16];
	u8 args[256]; /* the first of its command line, as /proc/PID/cmdline has it */
};

struct conn_snapshot {
	u64 now;
	u64 from;        /* when the last request was sent, or the first of several answered together; 0: not known */
	u64 to;          /* when the client last read */
	u32 tgid;
	u32 outstanding; /* requests in flight; 0, since not known, at a light client's end (see conn.light) */
	struct addr addr;
};

/* Counters, per CPU. The recording has them by these names: "tap.", and in lower case what follows C_. */
enum counter {
	C_CALLS_SERVER,
	C_CALLS_CLIENT,
	C_UNALIGNED,
	C_MERGED,
	C_DROPPED,
	C_NO_MEMORY,
	C_THREADS_FULL,
	C_IOVECS,
	C_GARBAGE,
	C_SLOW,
	C_SAMPLED,
	C_EXCESS,
	C_PUSH,
	C_OPS_FULL,
	C_ALIGNED,
	C_NO_BUFFER,
	C_UNREPORTED,
	C_LATE_ACKS,
	C_CALLS_OWN,      /* of slowpath itself, at the server's end, */
	C_CALLS_OBSERVER, /* and of other observers */
	C_UNPARSED,       /* system calls with requests that could not be read */
	C_LOST,           /* calls that waited for their replies when the order was lost */
	C_GAPS,           /* bytes that no system call showed: splice, io_uring, or a missed event */
	C_CONNS,          /* connections that were followed, */
	C_CONNS_FULL,     /* and new ones that were not, */
	C_UNFOLLOWED,     /* with reads by their servers and sends by their clients */
	C_PAIRS_FULL,
	C_AMBIGUOUS,      /* connections whose addresses another one has, too */
	C_THREADS,        /* that were given clocks */
	C_ENDS_FULL,      /* threads of servers without room for the ends of activities */
	C_SEGMENTS,       /* that came into a socket, */
	C_MARKS_FULL,     /* and those whose arrival was given to the segment before */
	C_BLOCKING,
	C_NOT_REDIS,
	C_ERRORS_FULL,
	C_READS,          /* of servers, and of clients whose server is not here, */
	C_LEFT_OUT,       /* and such reads on connections that were left out */
	C_MAX,
};

/* log-linear histogram: 32 steps per power of two, 3 % wide, to 2^36 ns */
enum hist_size { HIST_BITS = 5, HIST = (36 - HIST_BITS + 1) << HIST_BITS };

struct hist {
	u32 n[HIST];
};

/* Bits of the cookie of a hook in a TLS library: the function gives the length by its fourth argument, and returns 1;
 * its process is a server. */
enum tls_cookie : u64 { BY_POINTER = 1, OF_SERVER = 2 };

#endif
