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

/* ran_by is the time that a thread was on a CPU, up to a time at which it is, or was last; from an unknown begin. */
static __always_inline u64 ran_by(struct thread *t, u64 at)
{
	for (int i = 0; i < CLOCKS; i++)
		at -= t->clk.ns[i];
	return at;
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
	e->away = t->caller.away;
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
	if (t->syscall < 0 || number >= BPF_CORE_READ(table, max_fds))
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

#endif
