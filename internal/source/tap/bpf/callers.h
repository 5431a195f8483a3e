/* Callers: what the threads of clients wait for while they sleep, and the threads that they have call for them. */
#ifndef SLOWPATH_CALLERS_H
#define SLOWPATH_CALLERS_H

/* in_futex: a thread waits for a lock, or for another thread. */
static __always_inline bool in_futex(struct task_struct *t)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(t);
	return (int)REG_NR(regs) == NR_futex;
}

u32 interpreters; /* set once a thread has waited for one */

/* awaits_interpreter: a thread of a process in which one runs at a time waits for that, as CPython does it: up to the
 * time after which it asks for the lock (take_gil of Python/ceval_gil.c). */
static __noinline bool awaits_interpreter(struct thread *t, struct task_struct *task, u64 now)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	if (!t || !in_futex(task) || !REG_SYS4(regs))
		return false;
	struct {
		u64 s, ns;
	} limit = {};
	u32 op = REG_ARG2(regs) & ~FUTEX_PRIVATE_FLAG;
	if ((op != FUTEX_WAIT && op != FUTEX_WAIT_BITSET) ||
	    bpf_probe_read_user(&limit, sizeof(limit), (void *)REG_SYS4(regs)))
		return false;
	u64 left = limit.s * 1000000000 + limit.ns - (op == FUTEX_WAIT ? 0 : now);
	u32 tgid = t->tgid;
	if (left < least_interval_ns || left > switch_interval_ns)
		return false;
	enum calling *calls = bpf_map_lookup_elem(&threads_call, &tgid);
	if (!calls || *calls != ONE_AT_A_TIME)
		return false;
	interpreters = 1;
	return true;
}

/* note_epoll notes that a thread waits for the events of an epoll. */
static __noinline int note_epoll(struct caller *c, u32 tgid, u32 pid, s32 fd)
{
	if (!c)
		return 0;
	struct epoll_key k = {.tgid = tgid, .fd = fd};
	c->epoll = fd + 1;
	u32 *by = bpf_map_lookup_elem(&epolls, &k);
	if (!by)
		bpf_map_update_elem(&epolls, &k, &pid, BPF_NOEXIST);
	else if (*by != pid)
		*by = BY_SEVERAL;
	return 0;
}

/* takes_turns: other threads wait for the events of the same epoll (tokio's workers). One that sleeps elsewhere is
 * idle. */
static __noinline bool takes_turns(struct caller *c)
{
	if (!c)
		return false;
	struct epoll_key k = {.tgid = bpf_get_current_pid_tgid() >> 32, .fd = c->epoll - 1};
	u32 *by = bpf_map_lookup_elem(&epolls, &k);
	return by && *by == BY_SEVERAL;
}

/* reason_of is what a client's thread that falls asleep waits for, by its system call. What it turns out to have waited
 * for is known when it has been woken: see wakes and read_reply. */
static __always_inline enum reason reason_of(struct caller *c, struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	switch ((int)REG_NR(regs)) {
	case NR_epoll_wait:
	case NR_epoll_pwait:
	case NR_epoll_pwait2:
		c->loop = 1;
		if (c->epoll != (s32)REG_SYS1(regs) + 1)
			note_epoll(c, task->tgid, task->pid, REG_SYS1(regs));
		return FOR_EVENTS;
	case NR_poll:
	case NR_ppoll:
		if (!REG_ARG2(regs))
			return FOR_TIMER;
		/* fall through */
	case NR_select:
	case NR_pselect6:
	case NR_accept:
	case NR_accept4:
		return c->dials ? FOR_DIAL : FOR_EVENTS;
	case NR_io_uring_enter:
		c->loop = 1;
		return FOR_EVENTS;
	case NR_nanosleep:
	case NR_clock_nanosleep:
	case NR_futex:
		return FOR_TIMER; /* unless another thread wakes it */
	case NR_connect:
		return FOR_DIAL;
	}
	return FOR_OTHERS;
}

static __noinline int report_stall(u32 tgid)
{
	struct stalled_event *e = reserve(struct stalled_event);
	if (!e)
		return 0;
	__builtin_memset(e, 0, sizeof(*e));
	e->type = EV_STALLED;
	e->tgid = tgid;
	submit(e);
	return 0;
}

/* acts notes that an event loop that has read replies waits for events, or reads from a socket. Whatever else is to be
 * done by it waits until then. */
static __always_inline void acts(struct thread *t, u64 now)
{
	struct caller *c = &t->caller;
	if (!c->loop || !c->last.to)
		return;
	u64 ns = now - c->acted;
	if (c->acted && ns >= loop_stall_ns && !takes_turns(c)) {
		if (!c->waits.stalls++)
			report_stall(t->tgid);
		c->waits.stalls_ns += ns;
		if (ns > c->waits.stall_max)
			c->waits.stall_max = ns;
	}
	c->acted = now;
}

/* slept_itself: the last sleep of a thread was by itself. One up to a time limit after a longer one for another thread
 * may have been for an interpreter's lock. */
static __always_inline bool slept_itself(struct thread *t)
{
	struct caller *c = &t->caller;
	return c->why == FOR_TIMER && !(t->syscall == NR_futex && c->slept_to - c->slept_from < c->lock_ns);
}

/* falls_asleep notes why a client's thread sleeps. */
static __always_inline void falls_asleep(struct thread *t, struct task_struct *task, u64 now)
{
	struct caller *c = &t->caller;
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	s32 call = REG_NR(regs), arg = REG_SYS1(regs);
	u64 ns = c->slept_to - c->slept_from;
	/* a wait for a lock with a time limit goes on after it (CPython's interpreter lock: 5 ms); a longer one may be a
	 * sleep, after which Ruby's lock is waited for at the same address */
	if (c->why == FOR_TIMER && call == NR_futex && t->syscall == call && t->arg == arg && ns < longest_limit_ns &&
	    ran_by(t, now) - c->ran < goes_on_ns) {
		c->waits.ns[FOR_TIMER] -= ns;
		c->waits.ns[FOR_LOCK] += ns;
		c->timer_ns -= ns;
		if (!c->lock_since) {
			c->lock_since = c->slept_from;
			c->lock_ns = ns;
			c->lock_at = arg;
		}
		c->between = 0;
	} else if (slept_itself(t)) {
		c->lock_since = c->lock_ns = c->wakers = 0;
	}
	c->why = reason_of(c, task);
	c->interpreter = c->why == FOR_TIMER && awaits_interpreter(t, task, now);
	if (c->interpreter)
		c->why = FOR_LOCK;
	c->dials = c->own = 0;
	c->away = c->loop && c->why != FOR_EVENTS;
	if (!c->away)
		acts(t, now);
	t->syscall = call;
	t->arg = arg;
	if (c->away || (c->why == FOR_OTHERS && call != NR_recvfrom && call != NR_recvmsg))
		note_file(t, task);
}

/* add_sleep adds a sleep of a client's thread, which ends or has lasted ns, to those in its system call. */
static __noinline int add_sleep(struct thread *t, struct task_struct *by, u64 ns)
{
	if (!t)
		return 0;
	struct sleep_key k = {
		.tgid = t->tgid,
		.syscall = t->syscall,
		.fd = t->syscall >= 0 && t->syscall != NR_futex && (u32)t->arg < ALL_OTHERS ? t->arg : ALL_OTHERS,
		.device = t->file.device,
		.type = t->file.mode & S_IFMT,
	};
	struct sleeps *s = bpf_map_lookup_elem(&system_calls, &k);
	if (!s) {
		bpf_map_update_elem(&system_calls, &k, &no_sleeps, BPF_NOEXIST);
		s = bpf_map_lookup_elem(&system_calls, &k);
		if (s)
			s->file = t->file;
	}
	if (!s)
		return 0;
	__sync_fetch_and_add(&s->ns, ns);
	__sync_fetch_and_add(&s->waits, 1);
	if (__builtin_memcmp(s->file.name, t->file.name, sizeof(s->file.name)))
		s->files = 1;
	u32 tgid = shown_tgid_of(by);
	if (tgid && tgid != t->tgid) {
		s->by_tgid = tgid;
		__builtin_memcpy(s->by_comm, by->comm, 16);
	}
	return 0;
}

static __always_inline struct peer *peer_at(struct peer_key *k)
{
	struct peer *p = bpf_map_lookup_elem(&peers, k);
	if (!p) {
		bpf_map_update_elem(&peers, k, &no_peer, BPF_NOEXIST);
		p = bpf_map_lookup_elem(&peers, k);
	}
	return p;
}

/* add_peer adds n sleeps of a thread to those that were for a service. */
static __noinline int add_peer(struct peer_key *k, u64 ns, u64 n)
{
	if (!k)
		return 0;
	struct peer *p = peer_at(k);
	if (p) {
		__sync_fetch_and_add(&p->ns, ns);
		__sync_fetch_and_add(&p->waits, n);
	}
	return 0;
}

/* in_a_call: a client's thread sleeps in a system call that is neither about its events nor about what somebody sends
 * to it. */
static __always_inline bool in_a_call(struct thread *t)
{
	if (t->caller.why != FOR_OTHERS || t->syscall == NR_recvfrom || t->syscall == NR_recvmsg)
		return false;
	return (t->file.mode & S_IFMT) != S_IFSOCK || t->syscall == NR_write || t->syscall == NR_writev ||
	       t->syscall == NR_sendto || t->syscall == NR_sendmsg;
}

/* may_be_for_peer: a thread sleeps in a system call on one socket, and does not wait for whatever comes first, or for
 * a caller. */
static __always_inline bool may_be_for_peer(struct thread *t)
{
	struct caller *c = &t->caller;
	if (t->syscall == NR_accept || t->syscall == NR_accept4)
		return false;
	return (c->why == FOR_OTHERS && !in_a_call(t)) || (c->why == FOR_EVENTS && !c->loop);
}

/* operation makes room for the report of an operation, if it is slow and its call is not. */
static __always_inline struct operation_event *operation(u32 tid, u32 tgid, u64 from, u64 to, u64 call_ns)
{
	if (to - from < slow_ns || call_ns >= slow_ns || !take_token(to, slow_burst / 2))
		return NULL;
	struct operation_event *e = reserve(struct operation_event);
	if (!e)
		return NULL;
	__builtin_memset(e, 0, sizeof(*e));
	e->type = EV_OPERATION;
	e->tid = tid;
	e->tgid = tgid;
	e->from = from;
	e->to = to;
	return e;
}

/* done_reading ends what a thread waited for after it had read a reply: an interpreter's lock (CPython takes it on its
 * way out of recv). The call is as long as that for it, and begins when it began to wait for the connection, if it did.
 */
static __noinline int done_reading(struct thread *t)
{
	if (!t)
		return 0;
	struct caller *c = &t->caller;
	c->has_read = 0;
	if (!c->wanted && !c->had_lock)
		return 0;
	struct last_call *call = &c->last;
	u64 from = c->wanted ? c->wanted : call->from, to = call->to;
	u32 tgid = t->tgid;
	enum calling *calls = bpf_map_lookup_elem(&threads_call, &tgid);
	if (calls && *calls == ONE_AT_A_TIME && c->had_lock > to)
		to = c->had_lock;
	c->wanted = c->had_lock = 0;
	if (!calls || to - from <= call->to - call->from)
		return 0;
	add_operation(call->op, call->to - call->from, to - from, 1);
	struct operation_event *e = operation(t->tid, tgid, from, to, call->to - call->from);
	if (!e)
		return 0;
	e->got = call->from;
	e->call = *call;
	submit(e);
	return 0;
}

/* has_slept adds a sleep of a client's thread to its reason. It runs again from now on. */
static __always_inline void has_slept(struct thread *t, u64 from, u64 to, u64 now)
{
	struct caller *c = &t->caller;
	u32 why = c->why;
	if (why == FOR_TIMER && c->own)
		c->why = why = FOR_LOCK;
	if (c->peer.family && may_be_for_peer(t)) {
		add_peer(&c->peer, to - from, 1);
		c->why = why = FOR_PEERS;
	}
	c->waits.ns[why & REASON_MASK] += to - from;
	if (why == FOR_TIMER)
		c->timer_ns += to - from;
	/* what it waited for is where it slept longest: not an interpreter's lock, which it may need before and after */
	bool anew = !c->lock_since || c->between || ran_by(t, from) - c->ran > min_away_ns;
	if (why == FOR_LOCK && (anew || (t->arg != c->lock_at && to - from > c->lock_ns))) {
		c->lock_since = from;
		c->lock_at = t->arg;
		c->wakers = c->lock_ns = 0;
	}
	if (why == FOR_LOCK && t->arg == c->lock_at) {
		c->wakers |= c->woke;
		if (to - from > c->lock_ns)
			c->lock_ns = to - from;
	}
	c->woke = 0;
	c->between = why != FOR_LOCK;
	if (c->has_read) {
		u64 ran = c->ran > c->read_ran ? c->ran : c->read_ran;
		if (c->interpreter && ran_by(t, from) - ran < after_read_ns)
			c->had_lock = now;
		else
			done_reading(t);
	}
	c->futex_ns = t->syscall == NR_futex ? c->futex_ns + to - from : 0;
	if (why == FOR_EVENTS) {
		c->awake = c->events;
		c->events = to;
		c->acted = now;
	}
	if (why != FOR_LOCK)
		c->idle = to;
	c->slept_from = from;
	c->slept_to = to;
	c->ran = ran_by(t, from);
}

/* at_one_futex: a thread wakes those that sleep at a futex, and another one does. */
static __always_inline bool at_one_futex(struct task_struct *waker, struct task_struct *sleeper)
{
	struct pt_regs *a = (struct pt_regs *)bpf_task_pt_regs(waker), *b = (struct pt_regs *)bpf_task_pt_regs(sleeper);
	return (int)REG_NR(a) == NR_futex && REG_SYS1(a) == REG_SYS1(b);
}

/* awaits_events: a client's thread is in epoll, and waits for whatever comes first. */
static __always_inline bool awaits_events(struct thread *t)
{
	return !t->server && t->state == ASLEEP && t->caller.loop && !t->caller.away;
}

/* A thread that calls may have another one send its request and read its reply (Netty's event loops): it wakes that
 * one and sleeps until that one wakes it, mostly for little longer than the call takes. A worker that such a loop has
 * something to do for sleeps, too; but it does not ask, or (V8's workers) sleeps whether there is a call or not. Where
 * the loop is awake it cannot be seen who asks: then those do that do at other times. */
static __always_inline bool calls_by_loop(struct caller *c, u64 slept, u64 call_ns)
{
	c->helped++;
	if (slept <= SOON_CALLS * call_ns + min_offcpu_ns)
		c->soon++;
	return (c->asked > c->idle || SOMETIMES * c->asks >= c->helped) && 2 * c->soon >= c->helped;
}

/* called notes that the call of a thread is over. What it slept by itself since the one before was the pause of a poll,
 * if the request was the same, as that before it was: of a few keys that are asked for at random, two are equal now and
 * then. */
static __always_inline void called(struct caller *c, u64 print, u32 op)
{
	bool same = print && print == c->print;
	if (same && c->repeats && c->timer_ns) {
		c->waits.polls++;
		c->waits.polls_ns += c->timer_ns;
		c->waits.poll_op = op;
	}
	c->repeats = same;
	c->print = print;
	c->timer_ns = 0;
}

/* helps: a loop that has read a reply ends the sleep of a thread of its process, which began at since. */
static __noinline int helps(struct thread *loop, struct thread *t, u64 now)
{
	if (!loop || !t)
		return 0;
	struct caller *c = &t->caller;
	struct last_call *call = &loop->caller.last;
	u64 since = t->since, from = call->from > since ? call->from : since;
	u64 awake = call->from >= loop->caller.events ? loop->caller.events : loop->caller.awake;
	u32 tgid = t->tgid;
	if (since > call->from + (call->to - call->from) / 2)
		return 0; /* it may have waited for an interpreter's lock */
	if (t->state != ASLEEP || call->to <= since || !calls_by_loop(c, now - since, call->to - call->from) ||
	    !bpf_map_lookup_elem(&threads_call, &tgid))
		return 0;
	c->why = FOR_LOOP;
	if (call->to > from) { /* has_slept adds all to FOR_LOOP */
		c->waits.ns[FOR_REDIS] += call->to - from;
		c->waits.ns[FOR_LOOP] -= call->to - from;
	}
	called(c, call->print, call->op);
	/* The loop had nothing to do, and was not asked by this thread: until then it waited for something else. */
	if (awake > since && c->asked <= c->slept_to) {
		c->waits.ns[FOR_LOCK] += awake - since;
		c->waits.ns[FOR_LOOP] -= awake - since;
		since = awake;
	}
	if (now - since <= call->to - call->from)
		return 0;
	add_operation(call->op, call->to - call->from, now - since, 1);
	struct operation_event *e = operation(t->tid, tgid, since, now, call->to - call->from);
	if (!e)
		return 0;
	e->loop_tid = loop->tid;
	e->loop_awake = awake;
	e->call = *call;
	bpf_get_current_comm(e->loop_comm, 16);
	submit(e);
	return 0;
}

/* shares_futex: a thread is in futex, at one that several processes may share. */
static __always_inline bool shares_futex(struct task_struct *t)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(t);
	return in_futex(t) && !(REG_ARG2(regs) & FUTEX_PRIVATE_FLAG);
}

/* wakes notes that the current thread wakes another one of its process, which it may have a reply for; or one of
 * another process that waited for a lock which both share. */
static __always_inline void wakes(struct task_struct *task, struct thread *sleeper, u64 now)
{
	struct task_struct *by = bpf_get_current_task_btf();
	u32 slot;
	if (by->tgid != task->tgid) {
		if (sleeper && !sleeper->server && shares_futex(task) && shares_futex(by)) {
			sleeper->caller.why = FOR_OTHERS;
			__builtin_memset(&sleeper->file, 0, sizeof(sleeper->file));
		}
		return;
	}
	struct thread *t = watched(by, &slot);
	if (t && t->server)
		return;
	if (sleeper && awaits_events(sleeper)) {
		if (t) {
			t->caller.asks++;
			t->caller.asked = now;
		}
		return;
	}
	if (!in_futex(task))
		return;
	if (t)
		t->wakes |= 1ull << (task->pid & 63);
	if (!at_one_futex(by, task)) /* a timer ends a sleep whatever thread runs then */
		return;
	if (sleeper) {
		sleeper->caller.own = 1;
		sleeper->caller.woke |= 1ull << (by->pid & 63);
		sleeper->woken = now;
	}
	if (!t || !t->caller.loop || t->caller.last.to <= t->caller.events)
		return;
	if (!sleeper) /* its sleeps are known from now on */
		clocks_for(task, now, &slot, false);
	else if (!sleeper->server)
		helps(t, sleeper, now);
}

/* keep_waits adds the waits of a thread that ends to those of its process. */
static __noinline int keep_waits(struct thread *t, u64 now)
{
	if (!t || t->server)
		return 0;
	done_reading(t);
	u32 tgid = t->tgid;
	struct process_waits *sum = bpf_map_lookup_elem(&ended_waits, &tgid);
	if (!sum) {
		bpf_map_update_elem(&ended_waits, &tgid, &no_waits, BPF_NOEXIST);
		sum = bpf_map_lookup_elem(&ended_waits, &tgid);
	}
	if (!sum)
		return 0;
	__sync_fetch_and_add(&sum->threads, 1);
	__sync_fetch_and_add(&sum->ns, now - t->caller.began);
	for (int i = 0; i < CLOCKS; i++)
		__sync_fetch_and_add(&sum->clk.ns[i], t->clk.ns[i]);
	for (int i = 0; i < REASONS; i++)
		__sync_fetch_and_add(&sum->waits.ns[i], t->caller.waits.ns[i]);
	__sync_fetch_and_add(&sum->waits.polls, t->caller.waits.polls);
	__sync_fetch_and_add(&sum->waits.polls_ns, t->caller.waits.polls_ns);
	__sync_fetch_and_add(&sum->waits.stalls, t->caller.waits.stalls);
	__sync_fetch_and_add(&sum->waits.stalls_ns, t->caller.waits.stalls_ns);
	if (t->caller.waits.stall_max > sum->waits.stall_max)
		sum->waits.stall_max = t->caller.waits.stall_max;
	if (t->caller.waits.polls)
		sum->waits.poll_op = t->caller.waits.poll_op;
	t->caller.began = 0;
	return 0;
}

#endif
