/* Maps, constants that the loader sets, and counters. */
#ifndef SLOWPATH_MAPS_H
#define SLOWPATH_MAPS_H

/* Set by the loader. */
const volatile u64 slow_ns = 10000000;      /* calls that take this long are reported */
const volatile u64 walk_pause_ns = 1000000; /* of a walk: what is done with its keys, too. Bound: guess. */
const volatile u64 chain_pause_ns = 100000; /* from a reply to the next request: library, wake-up. Bound: guess. */
const volatile u64 min_activity_ns = 200000;    /* work of a server that takes this long is reported */
const volatile u64 min_offcpu_ns = 200000;  /* waits of a thread that last this long are reported */
const volatile u64 min_away_ns = 1000000;   /* so do sleeps of clients' event loops elsewhere. Bound: guess. */
const volatile u64 loop_stall_ns = 10000000; /* an event loop that does nothing of its own for so long. Bound: guess. */
const volatile u64 longest_limit_ns = 10000000; /* of a wait that goes on; CPython's is 5 ms. Bound: library. */
const volatile u64 goes_on_ns = 10000;      /* on a CPU: then a thread waits again for the same. Bound: guess. */
const volatile u64 after_read_ns = 200000;  /* and for a lock that it needs after a read. Bound: guess. */
const volatile u64 switch_interval_ns = 5000000; /* CPython's threads ask for the lock so often. Bound: library. */
const volatile u64 least_interval_ns = 4000000;  /* what is left of that when they sleep. Bound: guess. */
const volatile u64 status_ns = 1000000000;  /* connections report themselves this often while they are used */
const volatile u32 sample_per_tick = 0;     /* fast calls reported per CPU and tick in the long run (TICK_SHIFT) */
const volatile u32 sample_burst = 1 << 30;  /* and at once */
const volatile u32 slow_per_tick = 1;       /* slow calls reported per CPU and tick in the long run */
const volatile u32 slow_burst = 1000;       /* and at once */
const volatile u32 pid_namespace = 0;       /* number of slowpath's, where that is not the root's: see shown_pid */
const volatile u32 strict_all = 0;          /* parse at both ends of every connection */
const volatile u32 max_conns = CONNS;
const volatile u32 max_threads = THREADS;   /* the sizes of threads and free_threads, */
const volatile u32 max_pairs = PAIRS;       /* and of pairs, pair_slots and free_pairs go with it */
const volatile u32 max_ops = OPS;           /* the sizes of ops and hists go with it */

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct conn);
} conns SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u32); /* slot in threads */
} tasks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, THREADS);
	__type(key, u32);
	__type(value, struct thread);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, END_SLOTS);
	__type(key, u32);
	__type(value, struct ends);
} ends SEC(".maps");

/* slots of threads that have ended */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, THREADS);
	__type(value, u32);
} free_threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 65536);
	__type(key, u32);
	__type(value, u8); /* enum port_use */
} ports SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, OPS);
	__type(key, struct op_key);
	__type(value, u32);
} ops SEC(".maps");

/* error replies, those to slowpath left out */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ERRORS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct error_key);
	__type(value, u64);
} errors SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, OPS * 2);
	__type(key, u32);
	__type(value, struct hist);
} hists SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, C_MAX);
	__type(key, u32);
	__type(value, u64);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 8 << 20);
} events SEC(".maps");

/* The two ends of a connection on this host: key is the client's port and the addresses, value a slot in pairs. Where
 * both addresses are the same, both sockets are in one network namespace, and another one may have the same addresses:
 * net is its number. Elsewhere it is 0, since the ends may be in two namespaces. */
struct pair_key {
	u8 client[16], server[16];
	u16 cport, sport;
	u32 net;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PAIRS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct pair_key);
	__type(value, u32);
} pair_slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PAIRS);
	__type(key, u32);
	__type(value, struct pair);
} pairs SEC(".maps");

/* slots of pairs whose both ends have closed */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, PAIRS);
	__type(value, u32);
} free_pairs SEC(".maps");

/* Sockets of slowpath itself, by cookie (SO_COOKIE). They are looked up when their connection begins. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u64);
	__type(value, u8);
} own_sockets SEC(".maps");

/* Clients that the server listed as observers, as it knows their addresses, and when: a connection that began later
 * only has the address of one. */
struct observer_key {
	u8 addr[16];
	u32 port, node;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct observer_key);
	__type(value, u64);
} observers SEC(".maps");

/* Operations whose threads waited longer than their calls took: the histogram of those calls, and that of the
 * operations. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, OPS * 2);
	__type(key, u32);
	__type(value, struct hist);
} operations SEC(".maps");

/* waits of threads that have ended, by process */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, u32);
	__type(value, struct process_waits);
} ended_waits SEC(".maps");

/* Processes whose calls are those of their threads, by number as slowpath's /proc has it: enum calling. Go is none. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, enum calling);
} threads_call SEC(".maps");

/* What threads of clients waited for that is no server of Redis. Beyond so many it is not known which it was. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct peer_key);
	__type(value, struct peer);
} peers SEC(".maps");

/* requests to other services, by the connection */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct peer_request);
} peer_requests SEC(".maps");

/* Epolls that event loops wait for: the thread, or BY_SEVERAL. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct epoll_key);
	__type(value, u32);
} epolls SEC(".maps");

/* System calls in which threads of clients slept. Beyond so many they are not told apart. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct sleep_key);
	__type(value, struct sleeps);
} system_calls SEC(".maps");

/* Go programs whose client libraries are hooked, by number as slowpath's /proc has it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, GO_PROCESSES);
	__type(key, u32);
	__type(value, struct go_process);
} go_processes SEC(".maps");

/* operations of their goroutines. What ended with a panic is never known to have ended. */
struct go_key {
	u64 g; /* address of the runtime's g */
	u32 tgid, unused;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, struct go_key);
	__type(value, struct go_operation);
} go_operations SEC(".maps");

/* locks that they wait for, with the address of the lock in place of that of g. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct go_key);
	__type(value, struct go_lock);
} go_locks SEC(".maps");

/* Dials to ports of servers at addresses that are not watched, by socket. */
struct dial {
	u64 from;
	u32 tid, tgid;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u64);
	__type(value, struct dial);
} dials SEC(".maps");

/* Numbers that all programs share. */
struct shared {
	u32 next_thread;
	u32 next_op;
	u32 next_pair;
	u32 next_ends;
	u32 conns;
	u32 unused;
	u64 next_cookie;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct shared);
} globals SEC(".maps");

/* scratch is where the bytes of a system call are parsed. A program can be interrupted on its CPU only by another one
 * in a softirq, which parses nothing. */
struct scratch {
	u8 data[MASK + 1 + CARRY]; /* only the first WINDOW + CARRY bytes are used */
	u64 tick;     /* at which sampled was last lowered */
	u64 filled;   /* tick at which tokens were last added */
	u32 sampled;  /* fast calls reported for which no tick has made room yet */
	u32 tokens;   /* slow calls that may be reported */
	struct op_key key; /* of op_of */
	u32 op;
	u32 unused;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

const struct process_waits no_waits;
const struct go_operation no_operation;
const struct go_lock no_lock;
const struct peer no_peer;
const struct sleeps no_sleeps;

static __always_inline void count(u32 which, u64 n)
{
	u64 *c = bpf_map_lookup_elem(&counters, &which);
	if (c)
		*c += n;
}

/* counted is a counter of the CPU that this runs on. */
static __always_inline u64 counted(u32 which)
{
	u64 *c = bpf_map_lookup_elem(&counters, &which);
	return c ? *c : 0;
}

u32 leaving_out; /* set by the loader once a connection is left out */
u32 go_hooked;   /* and once a Go program is hooked */

/* others_here is how many reads from connections that are left out there were on this CPU, whose number is the last
 * byte. */
static __always_inline u32 others_here(void)
{
	return counted(C_LEFT_OUT) << 8 | (u8)bpf_get_smp_processor_id();
}

/* count_others counts them during an activity. Where the thread moved to another CPU there may have been one. */
static __always_inline void count_others(struct thread *t)
{
	u32 before = t->activity.others, now = others_here();
	t->activity.others = (u8)before == (u8)now ? (now - before) >> 8 : !!leaving_out;
}

static __always_inline struct shared *shared(void)
{
	u32 zero = 0;
	return bpf_map_lookup_elem(&globals, &zero);
}

/* monotonic_ns is the time of all events. */
static __always_inline u64 monotonic_ns(void)
{
	return bpf_ktime_get_ns();
}

/* address spaces of processes whose arguments were reported, by process */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, u64);
} told_programs SEC(".maps");

/* reserve takes room in the ring buffer, and counts events for which there is none. */
#define reserve(T)                                                          \
	({                                                                  \
		T *e_ = bpf_ringbuf_reserve(&events, sizeof(T), 0);         \
		if (!e_)                                                    \
			count(C_DROPPED, 1);                                \
		e_;                                                         \
	})
/* The reader polls on a timer and is not woken, so that the watched thread does not pay for a wake-up. */
#define submit(e) bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP)

/* take_token limits the rate of reports, and keeps `leave` tokens for others. */
static __always_inline bool take_token(u64 now, u32 leave)
{
	u32 zero = 0;
	struct scratch *w = bpf_map_lookup_elem(&scratches, &zero);
	if (!w)
		return false;
	u64 tick = now >> TICK_SHIFT, gone = tick - w->filled;
	if (gone) {
		u64 tokens = gone > slow_burst ? slow_burst : w->tokens + gone * slow_per_tick;
		w->tokens = tokens > slow_burst ? slow_burst : tokens;
		w->filled = tick;
	}
	if (w->tokens <= leave)
		return false;
	w->tokens--;
	return true;
}

#endif
