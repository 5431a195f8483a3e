/* Fast paths past the parser, for system calls with nothing new: requests or replies of the shape of those before, and
 * small replies. */
#ifndef SLOWPATH_FAST_PATHS_H
#define SLOWPATH_FAST_PATHS_H

/* single_write: the system call under way wrote one buffer, all of it. */
static __always_inline bool single_write(u32 ret)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
	int nr = REG_NR(regs);
	return (nr == NR_write || nr == NR_sendto) && REG_ARG3(regs) == ret;
}

/* buffer_of copies the one buffer of the system call under way, if it has just one. */
static __always_inline struct scratch *buffer_of(u32 len)
{
	u32 zero = 0;
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
	int nr = REG_NR(regs);
	struct scratch *w = bpf_map_lookup_elem(&scratches, &zero);
	barrier_var(len); /* verifiers before 6.10 forget the bound of a copy in memory */
	if (!w || len > WINDOW || (nr != NR_read && nr != NR_recvfrom && nr != NR_write && nr != NR_sendto))
		return NULL;
	return bpf_probe_read_user(w->data, len, (void *)REG_ARG2(regs)) ? NULL : w;
}

/* same_as_before takes a read that holds only requests of the shape of the one before. */
static __always_inline bool same_as_before(struct conn *c, struct feed *f)
{
	u32 len = f->len, one = c->shape.len, n = 0, p = 0;
	struct scratch *w;
	if (!c->aligned || c->req.started || c->req.carry_len || !one || len < one || len % one || !(w = buffer_of(len)))
		return false;
	if (len > one && c->mark_tail - c->mark_head > 1)
		return false; /* they did not arrive together */
	struct parse q = {.w = w};
	for (; n < SAME && p < len; n++, p += one)
		if (!same_request(&q, &c->shape, p))
			return false;
	if (p != len)
		return false;
	c->req.bytes = one;
	c->req.args = c->shape.args;
	push_requests(c, f, f->seq + len, n);
	return true;
}

/* same_replies takes a send that holds only replies of the shape of the one before, to requests that wait. */
static __always_inline bool same_replies(struct conn *c, struct feed *f)
{
	u32 len = f->len, one = c->reply_shape.len, n = 0, p = 0;
	struct scratch *w;
	if (!c->aligned || c->rep.started || c->rep.carry_len || !one || len < one || len % one || c->head == c->tail)
		return false;
	struct pending *first = &c->ring[c->head & (RING - 1)];
	if (first->count < len / one || !(w = buffer_of(len)))
		return false;
	struct parse q = {.w = w};
	for (; n < SAME && p < len; n++, p += one)
		if ((eight(&q, p) & c->reply_shape.mask) != c->reply_shape.head)
			return false;
	if (p != len)
		return false;
	c->rep.bytes = one;
	c->rep.error = 0;
	return pop_replies(c, f, n) != 0;
}

/* sends_error: the buffer of the system call under way begins with an error reply. */
static __always_inline bool sends_error(void)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
	u8 first = 0;
	return !bpf_probe_read_user(&first, 1, (void *)REG_ARG2(regs)) && first == '-';
}

/* small_reply takes a send that is the whole reply to the only request that waits, without reading more of it than its
 * first byte: one small buffer, written at once, on a connection that was never seen to carry anything but replies.
 * Whatever contradicts it later (a send without a request) makes the connection a strict one. */
static __always_inline bool small_reply(struct conn *c, struct feed *f)
{
	if (c->strict || !c->aligned || c->outstanding != 1 || c->may_block || c->transacts == EXECUTES ||
	    f->len > WINDOW || c->rep.started || sample_per_tick || c->calls < HANDSHAKE_CALLS)
		return false;
	struct pending *p = &c->ring[c->head & (RING - 1)];
	u64 ns = f->now - p->start;
	if (ns >= slow_ns || !single_write(f->len) || sends_error())
		return false;
	c->rep.error = 0;
	c->rep.bytes = f->len;
	return pop_replies(c, f, 1) == 1;
}

#endif
