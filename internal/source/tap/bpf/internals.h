/* Internals: functions of the server itself, hooked by name where the binary has the names. Only such as run a few times per second: a hook
 * in user space costs about a microsecond. */
#ifndef SLOWPATH_INTERNALS_H
#define SLOWPATH_INTERNALS_H

SEC("uprobe.multi")
int on_enter(struct pt_regs *ctx)
{
	u32 slot;
	struct thread *t = watched(bpf_get_current_task_btf(), &slot);
	if (t)
		t->inner[bpf_get_attach_cookie(ctx) & (INNER - 1)] = wall();
	return 0;
}

SEC("uretprobe.multi")
int on_leave(struct pt_regs *ctx)
{
	u32 slot, which = bpf_get_attach_cookie(ctx) & (INNER - 1);
	struct thread *t = watched(bpf_get_current_task_btf(), &slot);
	if (!t || !t->inner[which])
		return 0;
	u64 from = t->inner[which], now = wall();
	t->inner[which] = 0;
	if (now - from < min_item_ns)
		return 0;
	struct inner_event *e = reserve(struct inner_event);
	if (!e)
		return 0;
	e->type = EV_INNER;
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
