/* Switches: threads that leave a CPU, are woken, get one, and end. */
#ifndef SLOWPATH_SWITCHES_H
#define SLOWPATH_SWITCHES_H

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

/* is_told: a sleep of a client's thread, which ends, is worth an event: that of an event loop elsewhere, and that for
 * another thread, which wakes it. */
static __always_inline bool is_told(struct thread *t, u64 now)
{
	u64 ns = now - t->since;
	u32 tgid = t->tgid;
	if (t->caller.away)
		return ns >= min_away_ns && take_token(now, slow_burst / 2);
	return t->caller.own && ns >= slow_ns && bpf_map_lookup_elem(&threads_call, &tgid) &&
	       take_token(now, slow_burst / 2);
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
		if (state == BLOCKED && !t->server)
			add_sleep(t, task, now - since);
		enter(t, RUNNABLE, now);
		return 0;
	}
	if (state == ON_CPU && task->on_rq)
		return 0; /* it was about to sleep, and will not */
	t->waking = now; /* accounted when it runs; see read_clocks */
	if (state == ASLEEP && !t->server && in_a_call(t))
		add_sleep(t, bpf_get_current_task_btf(), now - t->since);
	if (state == ASLEEP && is_told(t, now))
		report_offcpu(t, task, t->caller.own ? bpf_get_current_task_btf() : task, t->since, now);
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
