/* Garbage collections of the runtimes of clients, by the probes (USDT) that are built into the runtimes. The loader
 * attaches these two only to clients whose replies lay unread: a probe that fires costs about a microsecond. */
#ifndef SLOWPATH_COLLECTIONS_H
#define SLOWPATH_COLLECTIONS_H

static __always_inline int report_collection(u8 ended)
{
	struct collection_event *e = reserve(struct collection_event);
	if (!e)
		return 0;
	e->type = EV_COLLECTION;
	e->ended = ended;
	e->unused = 0;
	e->tid = shown_tid();
	e->tgid = shown_tgid();
	e->unused2 = 0;
	e->now = monotonic_ns();
	submit(e);
	return 0;
}

SEC("uprobe.multi")
int on_collection_begin(struct pt_regs *ctx)
{
	return report_collection(0);
}

SEC("uprobe.multi")
int on_collection_end(struct pt_regs *ctx)
{
	return report_collection(1);
}

#endif
