/* Items: what the thread of a server did from one socket event to the next. An event loop serves one read at a time, so that the command
 * others waited for is known without any symbol of the server. */
#ifndef SLOWPATH_ITEMS_H
#define SLOWPATH_ITEMS_H

static __noinline int report_item(struct thread *t)
{
	struct item_event *e = reserve(struct item_event);
	if (!e)
		return 0;
	e->type = EV_ITEM;
	e->tid = t->tid;
	e->tgid = t->tgid;
	e->unused2 = 0;
	e->item = t->item;
	bpf_get_current_comm(e->comm, 16);
	submit(e);
	return 0;
}

/* end_item books the end of what the running thread was doing. While it runs, its clocks stand. */
static __always_inline void end_item(struct thread *t, u64 now)
{
	if (!t->open)
		return;
	if (t->open == 1) {
		t->item.to = now;
		t->item.clk_to = t->clk;
	}
	t->open = 0;
	if (t->item.conn && !t->item.sends) {
		u32 slot = t->turns;
		struct turns *all = bpf_map_lookup_elem(&turns, &slot);
		if (all) {
			struct turn *turn = &all->at[t->number & (TURNS - 1)];
			turn->to = t->item.to;
			turn->clk = t->item.clk_to;
			turn->number = t->number;
		}
	}
	if (t->item.to - t->item.from >= min_item_ns)
		report_item(t);
}

/* serves names the connection that an item is about. */
static __always_inline void serves(struct thread *t, struct conn *c)
{
	t->item.conn = c->cookie;
	t->item.rport = c->rport;
	t->item.lport = c->lport;
	__builtin_memcpy(t->item.raddr, c->raddr, 16);
}

/* sends_to says that the item under way ended with the sending of much. */
static __always_inline void sends_to(struct thread *t, struct conn *c, u32 bytes)
{
	serves(t, c);
	t->item.sends = 1;
	t->item.bytes = bytes;
}

/* reads_on says that a server reads on in the turn that it serves: a record of TLS is read in two parts. */
static __always_inline bool reads_on(struct thread *t, struct conn *c, u32 bytes)
{
	if (!c->tls || !c->outstanding || t->open != 1 || t->item.conn != c->cookie)
		return false;
	t->item.bytes += bytes;
	return true;
}

static __always_inline void begin_item(struct thread *t, struct conn *c, u32 bytes, u64 now)
{
	t->item.from = now;
	t->item.clk_from = t->clk;
	t->item.name[0] = t->item.name[1] = t->item.sub = 0;
	t->item.calls = t->item.args = 0;
	t->item.bytes = bytes;
	t->item.sends = 0;
	t->item.conn = 0;
	if (c)
		serves(t, c);
	t->open = 1;
}

#endif
