/* Activities: what the thread of a server did from one socket event to the next. An event loop serves one read at a
 * time, so that the command that others waited for is known without any symbol of the server. */
#ifndef SLOWPATH_ACTIVITIES_H
#define SLOWPATH_ACTIVITIES_H

static __noinline int report_activity(struct thread *t)
{
	struct activity_event *e = reserve(struct activity_event);
	if (!e)
		return 0;
	e->type = EV_ACTIVITY;
	e->tid = t->tid;
	e->tgid = t->tgid;
	e->unused2 = 0;
	e->activity = t->activity;
	bpf_get_current_comm(e->comm, 16);
	submit(e);
	return 0;
}

/* end_activity notes the end of what the running thread was doing. While it runs, its clocks do not advance. */
static __always_inline void end_activity(struct thread *t, u64 now)
{
	if (!t->open)
		return;
	if (t->open == UNDER_WAY) {
		t->activity.to = now;
		t->activity.clk_to = t->clk;
		count_others(t);
	}
	t->open = NO_ACTIVITY;
	if (t->activity.conn && !t->activity.sends && !t->activity.others) {
		u32 slot = t->ends - 1;
		struct ends *all = bpf_map_lookup_elem(&ends, &slot);
		if (all) {
			struct activity_end *end = &all->at[t->number & (ENDS - 1)];
			end->to = t->activity.to;
			end->clk = t->activity.clk_to;
			end->number = t->number;
		}
	}
	if (t->activity.to - t->activity.from >= min_activity_ns)
		report_activity(t);
}

/* serves sets the connection that an activity is about. */
static __always_inline void serves(struct thread *t, struct conn *c)
{
	t->activity.conn = c->cookie;
	t->activity.rport = c->at.rport;
	t->activity.lport = c->at.lport;
	__builtin_memcpy(t->activity.raddr, c->at.raddr, 16);
	t->activity.net = c->remote ? 0 : c->net;
}

/* sends_to: the activity under way ended with the sending of a large reply. */
static __always_inline void sends_to(struct thread *t, struct conn *c, u32 bytes)
{
	serves(t, c);
	t->activity.sends = 1;
	t->activity.bytes = bytes;
}

/* reads_on reports whether a server continues a request/response turn under TLS that it already serves: a TLS record is
 * read in two parts. */
static __always_inline bool reads_on(struct thread *t, struct conn *c, u32 bytes)
{
	bool begun = c->outstanding || c->req.skip || c->req.carry_len;
	if (!c->tls || !begun || t->open != UNDER_WAY || t->activity.conn != c->cookie)
		return false;
	t->activity.bytes += bytes;
	return true;
}

static __always_inline void begin_activity(struct thread *t, struct conn *c, u32 bytes, u64 now)
{
	t->activity.from = now;
	t->activity.clk_from = t->clk;
	t->activity.name[0] = t->activity.name[1] = t->activity.sub = 0;
	t->activity.calls = t->activity.args = 0;
	t->activity.bytes = bytes;
	t->activity.sends = 0;
	t->activity.others = others_here();
	t->activity.conn = 0;
	if (c)
		serves(t, c);
	t->open = UNDER_WAY;
}

#endif
