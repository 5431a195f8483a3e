/* What the programs keep, and what they pass to the reader (struct *_event; the Go side is made from these by bpf2go).
 * Times are CLOCK_MONOTONIC nanoseconds. */
#ifndef SLOWPATH_TYPES_H
#define SLOWPATH_TYPES_H

/* States of a thread clock. Time on the CPU has no clock of its own: it is what remains of the wall time. */
enum { RUNNABLE, THROTTLED, FROZEN, BLOCKED, ASLEEP, CLOCKS, ON_CPU = CLOCKS };

enum { SERVER = 1, CLIENT = 2 };

enum { MARKS = 8, BATCHES = 16, RING = 128, TURNS = 512, TURN_SLOTS = 64, THREADS = 4096, OPS = 128, CARRY = 48, WINDOW = 4096, MASK = 8191, PAIRS = 16384, INNER = 32, SENTS = 8 };

/* Longest command name that is kept, and longest subcommand. */
enum { NAME = 16 };

/* So many calls of a fresh connection are reported whatever they took: they show how it was made ready. */
enum { GREETING = 8 };

/* So many equal requests or replies of one system call are looked at together. */
enum { SAME = 32 };

enum { REPLY_OFF = 1, REPLY_SKIP = 2 };

/* First bytes of TLS records, and the second. */
enum { TLS_HANDSHAKE = 22, TLS_DATA = 23, TLS_VERSION = 3 };

/* So many bytes of plaintext are looked at together: "$16\r\n" in its longest form, and a name. */
enum { TOKEN = 32 };

/* After so many nanoseconds without a byte, a connection whose order is not known is looked at anew. */
enum { PATIENCE = 1000000000 };

/* So many exchanges, one call after the other and none faster than the path allows, show a client that waits for each reply. */
enum { EXCHANGES = 16 };

/* From so many bytes on, the time of a send is the sending. */
enum { BIG_SEND = 16384 };

struct clocks {
	u64 ns[CLOCKS];
};

/* item is what a server's thread did between one socket event and the next: serve one read, or (conn 0) its own work. */
struct item {
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
	u32 unused;
};

/* turn is the end of an item, kept until its replies are sent. */
struct turn {
	u64 to;
	struct clocks clk;
	u32 number;
	u32 unused;
};

struct turns {
	struct turn at[TURNS];
};

struct thread {
	u32 seq; /* odd while it is being written */
	u32 state;
	u64 since;   /* when the state began */
	u64 waking;  /* last time somebody woke it */
	u64 held_in; /* while throttled: address of its cfs_rq, */
	u64 held_ns; /* and the throttled time of that when it began */
	struct clocks clk;
	u32 tid, tgid;
	s32 syscall; /* while blocked: number of the system call, -1 for a page fault, */
	s32 arg;     /* and its first argument: the file, where it is about one */
	u32 server;  /* it serves */
	u32 number;  /* of the last read that it served */
	u32 open;    /* item: 1 under way, 2 ended when the thread fell asleep */
	u32 turns;   /* slot in turns */
	struct item item;
	u64 inner[INNER]; /* when it entered a function of the server */
	u64 ssl;          /* while it is in SSL_read or SSL_write: the object, */
	u64 ssl_buf;      /* the plaintext, */
	u64 ssl_len;      /* and where its length will be written */
};

/* mark: up to seq the bytes were in the socket at ns. */
struct mark {
	u64 ns;
	struct clocks clk;
	u32 seq;
	u32 unused;
};

/* batch is one read of a server: all its calls share these moments. */
struct batch {
	u64 arrived, read;
	struct clocks clk_arrived, clk_read;
	u32 item;
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
	u8 want;       /* next bulk string is: 1 the name, 2 a subcommand, 3 the argument of CLIENT REPLY or SETINFO, 4 what a library says of itself */
	u8 started;    /* the message in progress has begun */
	u8 unused;
	u8 carry[CARRY];
};

/* shape is a request that came before, as far as another must have the same bytes to be parsed like it: everything up to the first byte of
 * the key, and what stands between the key and the value. Most requests of a connection have the shape of the one before. */
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
	u32 error;
};

/* sent is the end of a reply on its way to a client at another address, until it is acknowledged. */
struct sent {
	u64 ns;      /* when it was sent; 0: acknowledged at once */
	u64 nearly;  /* when all but the last segment of it was acknowledged; 0: never seen */
	u32 seq;     /* of the byte after it */
	u32 unacked; /* bytes up to there that were not acknowledged when it was sent */
	u32 resent;  /* segments that TCP had sent again by then */
	u16 slow;    /* the call was slow at the server, */
	u16 shut;    /* and its client took no more bytes for a while before the send */
};

struct conn {
	u64 cookie;
	u64 opened;       /* 0: it was there before */
	u64 dialled;      /* client: when the SYN was sent */
	u64 send_start;   /* when the send system call in progress began */
	u64 last_in, last_out;
	u64 calls;        /* completed */
	u64 in_flight_ns, in_flight_since;
	u64 idle_ns;      /* client: from a reply to the next send, nothing in flight */
	u64 last_ns;      /* client: what the last call took, */
	u64 prompt;       /* and how often the next was sent within a quarter of that */
	u64 req_first;    /* when the first byte of the request in progress came, or was sent; 0: not known */
	u64 name[2];
	u64 sub, arg;
	u64 ssl;          /* of the turn under way: the library's object that its request was read by, or written by; 0: not known */
	u64 memo[2];      /* last name looked up, */
	u64 memo_sub;
	u64 published;    /* last status event */
	u64 silent_from, silent_to; /* server: last time that it sent nothing for slow_ns, with no rest of a reply to send */
	u64 partial;      /* server: last send that ended within a reply */
	u32 memo_op;      /* and its number */
	u32 slot;         /* thread that read last */
	u32 tid, tgid;
	u32 head, tail;   /* of the ring: [head, tail) wait */
	u32 outstanding;
	u32 batch_no;
	u32 mark_head, mark_tail;
	u32 pair;
	u32 asked;        /* TCP sequence number behind the last request that was read (server) */
	u32 acked;        /* server: TCP sequence number up to which its client acknowledged */
	u32 sent_head, sent_tail;
	u64 crowded;      /* when bytes last came for which no mark was left */
	u64 shut;         /* server: when its client last said that it takes no more bytes */
	u32 node;         /* see nodes.h; 0: not asked yet */
	u16 family, lport, rport;
	u8 role;
	u8 aligned;
	u8 tls;
	u8 ignore;        /* replication, MONITOR, subscriber: no calls */
	u8 reply_off;     /* CLIENT REPLY: REPLY_OFF, REPLY_SKIP (the next has none) */
	u8 exchanges;     /* seen without contradiction while not aligned */
	u8 passive_close; /* the peer closed first */
	u8 strict;        /* all its replies are parsed */
	u8 waiter;        /* the command of memo_op is meant to wait */
	u8 light;         /* client: the server's end, on this host, is watched, and parses for both */
	u8 plain;         /* the last request is one that waits for its reply in the usual way */
	u8 remote;        /* server: its client has another address, */
	u8 heard;         /* and acknowledgements of it are seen: acked is known */
	u8 laddr[16], raddr[16];
	struct stream req, rep;
	struct shape shape;
	struct reply_shape reply_shape;
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
	u32 unused;
};

/* sealed is the parser's place in the plaintext of a connection under TLS, and what was asked in its turn. */
struct sealed {
	u64 conn;             /* cookie */
	struct command first; /* request of the turn, */
	struct command next;  /* and the one in progress */
	u64 skip;             /* bytes of a bulk string that are still to come */
	u32 left;             /* elements of the request that are still to come */
	u32 calls;            /* requests of the turn */
	u8 want;              /* next bulk string is: 1 the name, 2 a subcommand */
	u8 sure;              /* the place is known */
	u8 turn;              /* the next plaintext is the first of its turn */
	u8 token_len;         /* bytes of an incomplete token */
	u32 unused;
	u8 token[3 * TOKEN];  /* the first third is used; what is read of a name may reach beyond it, and the rest is for old verifiers */
};

/* key of an op: the same command of two nodes has two numbers */
struct op_key {
	u64 name[2];
	u64 sub;
	u64 node;
};

/* published by the server's side of a connection for the client's side on the same host, at each send */
struct pair {
	u32 seq_from, seq_to; /* requests that this send answers end within (seq_from, seq_to] */
	u64 arrived, complete, read, done, send; /* first and last byte in the socket, read, end of own work, sent */
	struct clocks clk_arrived, clk_read, clk_done, clk_send;
	u32 tid, tgid;
	u32 client;  /* the client's end is watched too */
	u32 replied; /* TCP sequence number behind what was sent */
	u32 settled; /* nothing that was read is without its reply; 2: and the order of calls is known */
	u32 asked;   /* TCP sequence number behind what was read */
	u64 rep_bytes;
	u32 req_bytes, calls;
	u16 op, args;
	u32 slot;    /* of the client's thread, and its clocks at send */
	u32 tls;
	u32 split;   /* the clocks are known; those of a call that was short at the server are not worth the copying */
	u32 own;     /* the client is slowpath itself */
	u32 flags;   /* F_QUIET, F_PIECES */
	struct clocks clk_client;
};

enum { EV_CALL = 1, EV_ITEM, EV_OFFCPU, EV_OPEN, EV_CLOSE, EV_STATUS, EV_RETRANS, EV_INNER, EV_ACKED, EV_LOOKUP };

/* call_event.flags. Of the time between the read of a request and its reply, at the server: F_QUIET: it sent nothing on the connection, and owed
 * no rest of a reply. F_PIECES: the reply, or one before it on the connection, went out piece by piece. */
enum { F_SAMPLED = 1, F_MERGED = 2, F_FRESH = 4, F_ERROR = 8, F_TLS = 16, F_PAIRED = 32, F_QUIET = 64, F_PIECES = 128 };

struct addr {
	u16 family, lport, rport;
	u8 role, tls;
	u8 laddr[16], raddr[16];
};

struct call_event {
	u8 type, role;
	u16 flags;
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
	/* server: first byte arrived, read, own work done, reply sent.   client: send began, sent, reply arrived, reply read. */
	u64 at[4];
	struct clocks clk[4];
	u64 complete;    /* server: last byte arrived; clk[0] is of this moment */
	struct pair pair; /* client with F_PAIRED: what the server's side says */
	u8 comm[16];
};

struct item_event {
	u8 type, unused[3];
	u32 tid, tgid;
	u32 unused2;
	struct item item;
	u8 comm[16];
};

struct offcpu_event {
	u8 type, state;
	u16 unused;
	u32 tid, tgid;
	s32 syscall;
	u64 from, to;
	u32 by_tid, by_tgid; /* run queue: who had the CPU last */
	s32 arg;             /* blocked: first argument of the system call */
	u32 unused2;
	u8 comm[16];
	u8 by_comm[16];
};

/* open, close and status of a connection */
struct conn_event {
	u8 type, role;
	u8 aligned, closed_by; /* 1 this side, 2 the peer */
	u32 tid, tgid;
	u32 outstanding;
	u16 error, state; /* close: sk_err, and the state before */
	u16 op, args;     /* close: the first request that had no reply, */
	u32 req_bytes;    /* and its length */
	u32 unused;
	struct addr addr;
	u64 conn;
	u64 now;
	u64 opened, dialled;
	u64 last_in, last_out;
	u64 calls;
	u64 in_flight_ns;
	u64 idle_ns, prompt;
	u8 comm[16];
};

struct retrans_event {
	u8 type, state;
	u8 why;     /* TCP_CA_… : what the sender takes the segment for */
	u8 backoff; /* how often its timer has run out before, one after the other */
	u32 total;
	struct addr addr;
	u64 now;
	u64 last_out;     /* 0: this end's sends are not followed */
	u32 seq, unacked; /* bytes */
	u32 rto_us;       /* what its timer waits for the first time, as its round trips make it */
	u32 dups;         /* segments of this end that the peer said it had twice (DSACK), so far */
};

/* acked_event: a reply was acknowledged late, or that of a slow call was. */
struct acked_event {
	u8 type, shut; /* since the request its client took no more bytes for a while */
	u16 unused;
	u32 tgid;
	struct addr addr;
	u64 conn;
	u64 from, to;
	u64 sure;        /* ns of it that no delayed acknowledgement explains */
	u32 unacked;     /* bytes, when it was sent */
	u32 resent;      /* segments meanwhile */
	u32 rtt_min_us;  /* least round trip of the connection in the last minutes; 0: not known */
	u32 unused2;
};

struct inner_event {
	u8 type, which;
	u16 unused;
	u32 tid, tgid;
	u32 unused2;
	u64 from, to;
};

/* lookup_event: a process sent a question to a name server, or read its answer. */
struct lookup_event {
	u8 type, answer;
	u16 unused;
	u32 tgid;
	u64 now;
	u64 sock; /* tells sockets of one time apart */
	u8 comm[16];
};

/* glance: what a connection did last, as its client's end knows it; or the last request that its server's end has not answered. */
struct glance {
	u64 now;
	u64 from;        /* when the last request was sent, or the first of several that were answered together; 0: not known */
	u64 to;          /* when the client last read */
	u32 tgid;
	u32 outstanding; /* requests in flight; at the client's end of a connection whose server's end parses for both it is not known, and 0 */
	struct addr addr;
};

/* counters, per CPU */
enum { C_CALLS_SERVER, C_CALLS_CLIENT, C_UNALIGNED, C_MERGED, C_DROPPED, C_NO_MEMORY, C_THREADS_FULL, C_IOVECS,
       C_GARBAGE, C_SLOW, C_SAMPLED, C_EXCESS, C_PUSH, C_OPS_FULL, C_ALIGNED, C_NO_BUFFER, C_UNREPORTED, C_LATE_ACKS, C_MAX };

/* log-linear histogram: 32 steps per power of two, 3 % wide, to 2^36 ns */
enum { HIST_BITS = 5, HIST = (36 - HIST_BITS + 1) << HIST_BITS };

struct hist {
	u32 n[HIST];
};

#endif
