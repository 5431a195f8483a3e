/* Thread clocks: how long each watched thread was in each state. The states of any interval are the difference of two
 * readings. */
#ifndef SLOWPATH_CLOCKS_H
#define SLOWPATH_CLOCKS_H

static __always_inline struct thread *thread_of(u32 slot)
{
	return bpf_map_lookup_elem(&threads, &slot);
}

/* watched gives the clocks of a thread, if it has any. */
static __always_inline struct thread *watched(struct task_struct *t, u32 *slot)
{
	u32 *s = bpf_task_storage_get(&tasks, t, 0, 0);
	if (!s)
		return NULL;
	*slot = *s;
	return thread_of(*s);
}

/* read_clocks copies a thread's clocks as of now. Another CPU may be writing them: it tries again, and then takes what
 * it has. */
__noinline int read_clocks(u32 slot, u64 now, struct clocks *out)
{
	struct thread *t = thread_of(slot);
	if (!t || !out)
		return 0;
	for (int try = 0; try < 3; try++) {
		u32 seq = *(volatile u32 *)&t->seq;
		in_order(&t->seq);
		*out = t->clk;
		u32 state = *(volatile u32 *)&t->state;
		u64 since = *(volatile u64 *)&t->since;
		u64 waking = *(volatile u64 *)&t->waking;
		in_order(&t->seq);
		if (seq & 1 || *(volatile u32 *)&t->seq != seq)
			continue;
		if (state < CLOCKS && now > since) {
			if (state == ASLEEP && waking > since && waking < now) {
				/* woken, and the wake-up not accounted yet: see on_waking */
				out->ns[ASLEEP] += waking - since;
				out->ns[RUNNABLE] += now - waking;
			} else {
				out->ns[state] += now - since;
			}
		}
		return 1;
	}
	return 0;
}

/* enter accounts the state that ends, and begins another. */
static __always_inline void enter(struct thread *t, u32 state, u64 now)
{
	t->seq++;
	in_order(&t->seq);
	u32 was = t->state;
	if (was < CLOCKS && now > t->since)
		t->clk.ns[was] += now - t->since;
	t->state = state;
	t->since = now;
	in_order(&t->seq);
	t->seq++;
}

static __noinline u32 new_slot(void)
{
	u32 slot = 0;
	struct shared *g = shared();
	if (!g)
		return NO_SLOT;
	if (bpf_map_pop_elem(&free_threads, &slot)) {
		slot = __sync_fetch_and_add(&g->next_thread, 1);
		if (slot >= max_threads) {
			__sync_fetch_and_add(&g->next_thread, -1);
			count(C_THREADS_FULL, 1);
			return NO_SLOT;
		}
	}
	count(C_THREADS, 1);
	return slot;
}

/* take_ends gives a server's thread room for the ends of its activities: that of the thread that had its slot before,
 * if that had some. */
static __always_inline void take_ends(struct thread *t)
{
	struct shared *g = shared();
	if (t->ends || !g)
		return;
	if (g->next_ends >= END_SLOTS)
		count(C_ENDS_FULL, 1);
	else
		t->ends = __sync_fetch_and_add(&g->next_ends, 1) + 1;
}

/* clocks_for gives the clocks of a thread, and starts them if there are none. */
static __always_inline struct thread *clocks_for(struct task_struct *task, u64 now, u32 *slot_out, bool server)
{
	u32 *slot = bpf_task_storage_get(&tasks, task, 0, 0);
	if (!slot) {
		u32 fresh = new_slot();
		if (fresh == (u32)NO_SLOT)
			return NULL;
		struct thread *t = thread_of(fresh);
		if (!t)
			return NULL;
		t->seq = 0;
		t->state = ON_CPU;
		t->since = now;
		t->waking = t->woken = t->wakes = 0;
		__builtin_memset(&t->clk, 0, sizeof(t->clk));
		__builtin_memset(&t->caller, 0, sizeof(t->caller));
		t->caller.began = now;
		t->pid = task->pid;
		t->tid = shown_tid_of(task);
		t->tgid = shown_tgid_of(task);
		t->syscall = 0;
		t->server = server;
		t->open = NO_ACTIVITY;
		t->ssl = 0;
		if (server)
			take_ends(t);
		slot = bpf_task_storage_get(&tasks, task, &fresh, BPF_LOCAL_STORAGE_GET_F_CREATE);
		if (!slot) {
			bpf_map_push_elem(&free_threads, &fresh, 0);
			count(C_NO_MEMORY, 1);
			return NULL;
		}
	}
	*slot_out = *slot;
	return thread_of(*slot);
}

static __always_inline struct thread *current_thread(u64 now, u32 *slot, bool server)
{
	return clocks_for(bpf_get_current_task_btf(), now, slot, server);
}

enum {
	TASK_UNINTERRUPTIBLE = 2,
	TASK_STOPPED = 4,
	TASK_TRACED = 8,
	TASK_NOLOAD = 0x400,
	TASK_FROZEN = 0x8000,
};
enum { JOBCTL_TRAP_FREEZE = 1 << 23 };

/* state_of is the state of a thread that leaves the CPU. */
static __always_inline u32 state_of(struct task_struct *t, bool preempt, u32 state)
{
	if (preempt || state == 0) {
		if (bpf_core_field_exists(t->throttled)) {
			if (t->throttled)
				return THROTTLED;
		} else if (bpf_core_field_exists(t->se.cfs_rq->throttle_count) && t->se.cfs_rq &&
			   t->se.cfs_rq->throttle_count) {
			return THROTTLED;
		}
		return RUNNABLE;
	}
	if (state & (TASK_STOPPED | TASK_TRACED | TASK_FROZEN) || t->jobctl & JOBCTL_TRAP_FREEZE)
		return FROZEN;
	if (state & TASK_UNINTERRUPTIBLE && !(state & TASK_NOLOAD))
		return BLOCKED;
	return ASLEEP;
}

/* throttled_time is how long the tasks of a cfs_rq were throttled, up to the last release; it grows at releases only.
 * It is read by address: a thread that was released may have moved to the cfs_rq of another CPU. */
static __always_inline u64 throttled_time(u64 cfs_rq)
{
	struct cfs_rq *q = (struct cfs_rq *)cfs_rq;
	if (!q || !bpf_core_field_exists(q->throttled_clock_self_time))
		return 0;
	return BPF_CORE_READ(q, throttled_clock_self_time);
}

/* report_offcpu reports a wait that began when the present state did. */
static __noinline int report_offcpu(struct thread *t, struct task_struct *task, struct task_struct *by, u64 from,
				    u64 to)
{
	if (to - from < min_offcpu_ns)
		return 0;
	struct offcpu_event *e = reserve(struct offcpu_event);
	if (!e)
		return 0;
	e->type = EV_OFFCPU;
	e->state = t->state;
	e->unused = 0;
	e->tid = t->tid;
	e->tgid = t->tgid;
	e->syscall = t->syscall;
	e->from = from;
	e->to = to;
	e->by_tid = shown_tid_of(by);
	e->by_tgid = shown_tgid_of(by);
	e->by_outside = by->pid && !e->by_tid;
	e->arg = t->arg;
	e->file = t->file;
	e->unused2 = 0;
	__builtin_memcpy(e->comm, task->comm, 16);
	__builtin_memcpy(e->by_comm, by->comm, 16);
	submit(e);
	return 0;
}

/* awaits_work: a thread that falls asleep has nothing to do. It waits for the next event, or to be woken by another
 * thread. A sleep in any other system call is part of what it is doing. */
static __always_inline bool awaits_work(struct task_struct *t)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(t);
	switch ((int)REG_NR(regs)) {
	case NR_epoll_wait:
	case NR_epoll_pwait:
	case NR_epoll_pwait2:
	case NR_io_uring_enter:
	case NR_read:
	case NR_readv:
	case NR_recvfrom:
	case NR_recvmsg:
		return true;
	case NR_futex:
		return t->pid != t->tgid;
	}
	return false;
}

/* held_up: a server's thread that falls asleep waits for something else than work, in a system call on something else
 * than its clients: its log is a pipe that nobody reads. What sleeps in a command (DEBUG SLEEP, MIGRATE) is that
 * command's, and in a futex a thread may have nothing to do. */
static __always_inline bool held_up(struct thread *t, struct task_struct *task)
{
	if (!t->server || awaits_work(task))
		return false;
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	switch ((int)REG_NR(regs)) {
	case NR_futex:
	case NR_accept:
	case NR_accept4:
	case NR_poll:
	case NR_ppoll:
	case NR_select:
	case NR_pselect6:
	case NR_io_getevents:
	case NR_restart_syscall:
		return false;
	case NR_nanosleep:
	case NR_clock_nanosleep:
		return t->open != UNDER_WAY || !t->activity.calls;
	}
	return true;
}

/* note_file notes what a thread has open under the number that it gave a system call. */
static __noinline int note_file(struct thread *t, struct task_struct *task)
{
	__builtin_memset(&t->file, 0, sizeof(t->file));
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	u32 number = t->arg;
	if (number >= BPF_CORE_READ(table, max_fds))
		return 0;
	struct file *file = NULL;
	bpf_probe_read_kernel(&file, sizeof(file), BPF_CORE_READ(table, fd) + number);
	if (!file)
		return 0;
	t->file.mode = BPF_CORE_READ(file, f_inode, i_mode);
	t->file.device = BPF_CORE_READ(file, f_inode, i_sb, s_dev);
	bpf_probe_read_kernel_str(t->file.name, sizeof(t->file.name), BPF_CORE_READ(file, f_path.dentry, d_name.name));
	return 0;
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
	case NR_nanosleep:
	case NR_clock_nanosleep:
	case NR_futex:
		return FOR_TIMER; /* unless another thread wakes it */
	case NR_connect:
		return FOR_DIAL;
	}
	return FOR_OTHERS;
}

/* falls_asleep notes why a client's thread sleeps. */
static __always_inline void falls_asleep(struct thread *t, struct task_struct *task, u64 now)
{
	struct caller *c = &t->caller;
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	s32 call = REG_NR(regs), arg = REG_SYS1(regs);
	/* a wait for a lock with a time limit goes on after it (CPython's interpreter lock: 5 ms) */
	if (c->why == FOR_TIMER && call == NR_futex && t->syscall == call && t->arg == arg &&
	    now - c->ran < goes_on_ns) {
		u64 ns = c->slept_to - c->slept_from;
		c->waits.ns[FOR_TIMER] -= ns;
		c->waits.ns[FOR_LOCK] += ns;
		c->timer_ns -= ns;
		if (!c->lock_since)
			c->lock_since = c->slept_from;
		c->between = 0;
	} else if (c->why == FOR_TIMER) {
		c->lock_since = c->wakers = 0;
	}
	c->why = reason_of(c, task);
	c->dials = c->own = 0;
	c->away = c->loop && c->why != FOR_EVENTS;
	t->syscall = call;
	t->arg = arg;
	if (c->away)
		note_file(t, task);
}

/* has_slept adds a sleep of a client's thread to its reason. It runs again from now on. */
static __always_inline void has_slept(struct thread *t, u64 from, u64 to, u64 now)
{
	struct caller *c = &t->caller;
	u32 why = c->why;
	if (why == FOR_TIMER && c->own)
		c->why = why = FOR_LOCK;
	c->waits.ns[why & REASON_MASK] += to - from;
	if (why == FOR_TIMER)
		c->timer_ns += to - from;
	if (why == FOR_LOCK && (!c->lock_since || c->between || from - c->ran > min_away_ns))
		c->lock_since = from;
	c->between = why != FOR_LOCK;
	c->futex_ns = t->syscall == NR_futex ? c->futex_ns + to - from : 0;
	if (why == FOR_EVENTS) {
		c->awake = c->events;
		c->events = to;
	}
	if (why != FOR_LOCK)
		c->idle = to;
	c->slept_from = from;
	c->slept_to = to;
	c->ran = now;
}

static __always_inline void leave_cpu(struct task_struct *prev, bool preempt, u32 prev_state, u64 now)
{
	u32 slot;
	struct thread *t = watched(prev, &slot);
	if (!t)
		return;
	u32 state = state_of(prev, preempt, prev_state);
	if (state == ASLEEP && !t->server)
		falls_asleep(t, prev, now);
	if (state == ASLEEP && held_up(t, prev))
		state = BLOCKED;
	if (state == BLOCKED) {
		struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(prev);
		t->syscall = REG_NR(regs);
		t->arg = REG_SYS1(regs);
		if (t->server)
			note_file(t, prev);
	}
	if (state == ASLEEP && t->open == UNDER_WAY && awaits_work(prev)) {
		t->activity.to = now;
		read_clocks(slot, now, &t->activity.clk_to);
		count_others(t);
		t->open = ENDED_ASLEEP;
	}
	if (state == THROTTLED) {
		t->held_in = (u64)prev->se.cfs_rq;
		t->held_ns = throttled_time(t->held_in);
	}
	enter(t, state, now);
}

static __always_inline void take_cpu(struct task_struct *next, struct task_struct *prev, u64 now)
{
	u32 slot;
	struct thread *t = watched(next, &slot);
	if (!t)
		return;
	u32 was = t->state;
	u64 since = t->since;
	/* No thread runs without having been woken. If no wake-up was seen since it fell asleep, it came while the thread
	 * was on its way there: on_waking saw it on the CPU still. All since then is a wait for the CPU. */
	if (was == ASLEEP) {
		u64 woken = t->waking > since ? t->waking : since;
		if (!t->server)
			has_slept(t, since, woken, now);
		enter(t, RUNNABLE, woken);
		was = RUNNABLE;
		since = woken;
	}
	/* Between its release and now it was in the run queue like any other thread. */
	if (was == THROTTLED) {
		u64 held = throttled_time(t->held_in) - t->held_ns;
		if (held && held < now - since) {
			report_offcpu(t, next, prev, since, since + held);
			since += held;
			enter(t, RUNNABLE, since);
		}
	}
	if (was != ASLEEP && was < CLOCKS)
		report_offcpu(t, next, prev, since, now);
	enter(t, ON_CPU, now);
	t->waking = 0;
}

static __always_inline int switched(bool preempt, struct task_struct *prev, struct task_struct *next,
				    unsigned int prev_state)
{
	u64 now = monotonic_ns();
	leave_cpu(prev, preempt, prev_state, now);
	take_cpu(next, prev, now);
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int prev_state)
{
	return switched(preempt, prev, next, prev_state);
}

/* in_futex: a thread waits for a lock, or for another thread. */
static __always_inline bool in_futex(struct task_struct *t)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(t);
	return (int)REG_NR(regs) == NR_futex;
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

/* add_operation has an operation counted for the time that its thread slept, and its call no more. */
static __always_inline void add_operation(u32 op, u64 call_ns, u64 ns)
{
	u32 key = op * 2;
	struct hist *calls = bpf_map_lookup_elem(&operations, &key);
	key++;
	struct hist *all = bpf_map_lookup_elem(&operations, &key);
	if (!calls || !all)
		return;
	__sync_fetch_and_add(&calls->n[hist_step(call_ns)], 1);
	__sync_fetch_and_add(&all->n[hist_step(ns)], 1);
}

/* called notes that the call of a thread is over. What it slept by itself since the one before, if the request was the
 * same, was the pause of a poll. */
static __always_inline void called(struct caller *c, u64 print, u32 op)
{
	if (print && print == c->print && c->timer_ns) {
		c->waits.polls++;
		c->waits.polls_ns += c->timer_ns;
		c->waits.poll_op = op;
	}
	c->print = print;
	c->timer_ns = 0;
}

/* operation makes room for the report of an operation, if it is slow and its call is not. */
static __always_inline struct operation_event *operation(struct thread *t, u64 from, u64 to, u64 call_ns)
{
	if (to - from < slow_ns || call_ns >= slow_ns || !take_token(to, slow_burst / 2))
		return NULL;
	struct operation_event *e = reserve(struct operation_event);
	if (!e)
		return NULL;
	__builtin_memset(e, 0, sizeof(*e));
	e->type = EV_OPERATION;
	e->tid = t->tid;
	e->tgid = t->tgid;
	e->from = from;
	e->to = to;
	return e;
}

/* helps: a loop that has read a reply ends the sleep of a thread of its process, which began at since. */
static __noinline int helps(struct thread *loop, struct thread *t, struct task_struct *task, u64 now)
{
	if (!loop || !t)
		return 0;
	struct caller *c = &t->caller;
	struct last_call *call = &loop->caller.last;
	u64 since = t->since, from = call->from > since ? call->from : since;
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
	if (now - since <= call->to - call->from)
		return 0;
	add_operation(call->op, call->to - call->from, now - since);
	struct operation_event *e = operation(t, since, now, call->to - call->from);
	if (!e)
		return 0;
	e->loop_tid = loop->tid;
	e->loop_awake = call->from >= loop->caller.events ? loop->caller.events : loop->caller.awake;
	e->call = *call;
	__builtin_memcpy(e->comm, task->comm, 16);
	bpf_get_current_comm(e->loop_comm, 16);
	submit(e);
	return 0;
}

/* wakes notes that the current thread wakes another one of its process, which it may have a reply for. */
static __always_inline void wakes(struct task_struct *task, struct thread *sleeper, u64 now)
{
	struct task_struct *by = bpf_get_current_task_btf();
	u32 slot;
	if (by->tgid != task->tgid)
		return;
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
		sleeper->caller.wakers |= 1ull << (by->pid & 63);
		sleeper->woken = now;
	}
	if (!t || !t->caller.loop || t->caller.last.to <= t->caller.events)
		return;
	if (!sleeper) /* its sleeps are known from now on */
		clocks_for(task, now, &slot, false);
	else if (!sleeper->server)
		helps(t, sleeper, task, now);
}

/* sched_waking comes before the wake-up has reached the other CPU, sched_wakeup after. */
SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *task)
{
	u32 slot;
	u64 now = monotonic_ns();
	struct thread *t = watched(task, &slot);
	wakes(task, t, now);
	if (!t)
		return 0;
	u32 state = t->state;
	if (state == BLOCKED || state == FROZEN) {
		u64 since = t->since;
		report_offcpu(t, task, bpf_get_current_task_btf(), since, now);
		enter(t, RUNNABLE, now);
		return 0;
	}
	if (state == ON_CPU && task->on_rq)
		return 0; /* it was about to sleep, and will not */
	t->waking = now; /* accounted when it runs; see read_clocks */
	if (state == ASLEEP && t->caller.away && now - t->since >= min_away_ns && take_token(now, slow_burst / 2))
		report_offcpu(t, task, t->caller.own ? bpf_get_current_task_btf() : task, t->since, now);
	return 0;
}

/* keep_waits adds the waits of a thread that ends to those of its process. */
static __noinline int keep_waits(struct thread *t, u64 now)
{
	if (!t || t->server)
		return 0;
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
	if (t->caller.waits.polls)
		sum->waits.poll_op = t->caller.waits.poll_op;
	t->caller.began = 0;
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	u32 *slot = bpf_task_storage_get(&tasks, task, 0, 0);
	if (!slot)
		return 0;
	u32 s = *slot;
	keep_waits(thread_of(s), monotonic_ns());
	bpf_task_storage_delete(&tasks, task);
	bpf_map_push_elem(&free_threads, &s, 0);
	return 0;
}

#endif
