/* Operations of Go programs: what a goroutine waits for in its client library, which no thread waits for. A goroutine
 * is known by the address of its g. Functions of the library are hooked at jumps: those the kernel carries out itself,
 * while other instructions cost a second trap, of 9 µs in a virtual machine. An operation is over when its reply is
 * read: what a goroutine does then is its own work, and a return is no jump. */
#ifndef SLOWPATH_GO_OPERATIONS_H
#define SLOWPATH_GO_OPERATIONS_H

/* From when a goroutine has a connection, or a lock, to the operation that it was for. Bound: guess. */
enum { GO_SOON_NS = 5000000 };

static __always_inline void go_begins(struct go_operation *o, u64 hook, u64 now)
{
	bool has_taken = o->from && o->takes && o->got && now - o->got < GO_SOON_NS;
	o->takes = hook == GO_TAKE;
	o->answered = 0;
	if (hook == GO_ENTER && has_taken)
		return;
	o->from = o->asked && o->locked > o->asked && now - o->locked < GO_SOON_NS ? o->asked : now;
	o->asked = 0;
	o->got = 0;
}

/* go_waits: a goroutine waits for a lock, or does not any more. The locks within an operation are its library's. */
static __always_inline void go_waits(struct go_operation *o, u64 hook, u64 lock, u32 tgid, u64 now)
{
	if (o->from && !o->answered)
		return;
	if (hook == GO_LOCK) {
		if (!o->asked || o->locked < o->asked || now - o->locked > min_offcpu_ns)
			o->asked = now; /* else another goroutine was faster, and it waits again */
		o->waits = 1;
		o->lock = lock;
	} else if (o->waits) { /* else it waited for something else */
		o->waits = 0;
		o->locked = now;
	}
	struct go_key k = {.g = o->lock, .tgid = tgid};
	struct go_lock *l = bpf_map_lookup_elem(&go_locks, &k);
	if (!l && hook == GO_LOCK) {
		bpf_map_update_elem(&go_locks, &k, &no_lock, BPF_NOEXIST);
		l = bpf_map_lookup_elem(&go_locks, &k);
	}
	if (!l)
		return;
	if (hook == GO_LOCK && l->since <= l->released)
		l->since = now;
	if (hook == GO_WOKEN && l->held_to >= o->asked)
		__builtin_memcpy(o->holder, l->holder, sizeof(o->holder));
	else
		__builtin_memset(o->holder, 0, sizeof(o->holder));
}

/* go_unlocks: a goroutine gives back a lock. Who waited long waited for the one that held it longest, and not for those
 * before it in the queue. */
static __always_inline void go_unlocks(struct pt_regs *ctx, u32 tgid, u64 now)
{
	struct go_key k = {.g = REG_GO1(ctx), .tgid = tgid};
	struct go_lock *l = bpf_map_lookup_elem(&go_locks, &k);
	if (!l)
		return;
	u64 held = now - (l->since > l->released ? l->since : l->released);
	l->released = now;
	if (held < l->held && now - l->held_to < l->held)
		return;
	l->held = held;
	l->held_to = now;
	bpf_get_stack(ctx, l->holder, sizeof(l->holder), BPF_F_USER_STACK);
}

SEC("uprobe.multi")
int on_go_function(struct pt_regs *ctx)
{
	struct go_key k = {.g = REG_G(ctx), .tgid = shown_tgid()};
	u64 hook = bpf_get_attach_cookie(ctx), now = monotonic_ns();
	struct go_process *p = bpf_map_lookup_elem(&go_processes, &k.tgid);
	if (!p)
		return 0;
	__sync_fetch_and_add(&p->hits, 1);
	struct go_operation *o = bpf_map_lookup_elem(&go_operations, &k);
	if (hook == GO_UNLOCK) {
		go_unlocks(ctx, k.tgid, now);
		return 0;
	}
	if (!o && (hook == GO_ENTER || hook == GO_TAKE)) {
		bpf_map_update_elem(&go_operations, &k, &no_operation, BPF_NOEXIST);
		o = bpf_map_lookup_elem(&go_operations, &k);
	}
	if (!o)
		return 0;
	if (hook == GO_LOCK || hook == GO_WOKEN)
		go_waits(o, hook, REG_GO1(ctx), k.tgid, now);
	else if (hook != GO_GOT)
		go_begins(o, hook, now);
	else if (!o->answered)
		o->got = now;
	return 0;
}

/* go_answered counts the calls of an operation, whose replies a goroutine has just read. */
static __always_inline void go_answered(struct conn *c, struct go_process *p, struct go_operation *o, u32 calls,
					u64 now)
{
	u64 from = o->from, sent = c->replied_from, got = o->got;
	u32 op = c->replied_op;
	u64 locked = o->locked > from && o->locked <= sent ? o->locked : 0, ready = locked ? locked : from;
	u64 call_ns = now - sent, waited = got > ready && got <= sent ? got - ready : 0;
	__sync_fetch_and_add(&p->calls, calls);
	__sync_fetch_and_add(&p->calls_ns, call_ns);
	__sync_fetch_and_add(&p->waited_ns, waited);
	if (waited > call_ns)
		__sync_fetch_and_add(&p->waits, calls);
	if (waited > p->waited_max)
		p->waited_max = waited;
	add_operation(op, call_ns, now - from, calls);
	struct operation_event *e = operation(c->tid, c->tgid, from, now, call_ns);
	if (!e)
		return;
	e->got = got <= sent ? got : 0;
	e->locked = locked;
	if (locked)
		__builtin_memcpy(e->holder, o->holder, sizeof(e->holder));
	e->call.from = sent;
	e->call.to = now;
	e->call.op = op;
	fill_addr(&e->call.addr, c);
	submit(e);
}

/* go_here gives the goroutine that runs, if it is one of a program that is hooked. */
static __always_inline struct go_process *go_here(struct conn *c, struct go_key *k)
{
	struct task_struct *task = bpf_get_current_task_btf();
	k->g = REG_G((struct pt_regs *)bpf_task_pt_regs(task));
	k->tgid = c->tgid;
	k->unused = 0;
	return bpf_map_lookup_elem(&go_processes, &k->tgid);
}

/* go_takes notes that a goroutine uses a connection. Calls of another one are no chain with its own. */
static __noinline int go_takes(struct conn *c)
{
	struct go_key k;
	if (!c || !go_here(c, &k))
		return 0;
	c->other_caller = c->g && c->g != k.g;
	if (c->other_caller)
		end_chain(c);
	c->g = k.g;
	return 0;
}

/* go_read: a goroutine has read replies. What it sent after it had read others is no part of that
 * operation; and one for which a connection was opened counts from the dial on, otherwise. */
static __noinline int go_read(struct conn *c, u64 now)
{
	if (!c || !c->replied_from || c->observer)
		return 0;
	struct go_key k;
	struct go_process *p = go_here(c, &k);
	if (!p)
		return 0;
	struct go_operation *o = bpf_map_lookup_elem(&go_operations, &k);
	u64 sent = c->replied_from;
	u32 calls = (u32)c->calls - c->go_calls;
	c->go_calls = c->calls;
	if (!calls || calls > RING)
		calls = 1;
	if (!o || !o->from || o->takes || sent < o->from || c->opened > o->from || (o->answered && sent > o->answered)) {
		__sync_fetch_and_add(&p->others, calls);
		return 0;
	}
	if (!o->answered)
		o->answered = now;
	go_answered(c, p, o, calls, now);
	return 0;
}

#endif
