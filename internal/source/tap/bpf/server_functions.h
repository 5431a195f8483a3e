/* Functions of the server itself, hooked by name where the binary has the names. Only such as run a few times per
 * second: a hook in user space costs about a microsecond. */
#ifndef SLOWPATH_SERVER_FUNCTIONS_H
#define SLOWPATH_SERVER_FUNCTIONS_H

SEC("uprobe.multi")
int on_function_entry(struct pt_regs *ctx)
{
	u32 slot;
	struct thread *t = watched(bpf_get_current_task_btf(), &slot);
	if (t)
		t->entered[bpf_get_attach_cookie(ctx) & (FUNCTIONS - 1)] = monotonic_ns();
	return 0;
}

SEC("uretprobe.multi")
int on_function_return(struct pt_regs *ctx)
{
	u32 slot, which = bpf_get_attach_cookie(ctx) & (FUNCTIONS - 1);
	struct thread *t = watched(bpf_get_current_task_btf(), &slot);
	if (!t || !t->entered[which])
		return 0;
	u64 from = t->entered[which], now = monotonic_ns();
	t->entered[which] = 0;
	if (now - from < min_activity_ns)
		return 0;
	struct function_event *e = reserve(struct function_event);
	if (!e)
		return 0;
	e->type = EV_FUNCTION;
	e->which = which;
	e->unused = 0;
	e->tid = t->tid;
	e->tgid = t->tgid;
	e->unused2 = 0;
	e->from = from;
	e->to = now;
	submit(e);
	return 0;
}

#endif
