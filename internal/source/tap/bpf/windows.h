/* Windows: the bytes of a system call are copied from the memory of its thread and parsed piece by piece, as RESP or as
 * TLS. */
#ifndef SLOWPATH_WINDOWS_H
#define SLOWPATH_WINDOWS_H

/* windows is which part of a system call's bytes is in the scratch. */
struct windows {
	struct feed *f;
	struct conn *c;
	struct scratch *w;
	const struct iovec *iov; /* buffers that are still to come, */
	u32 many;                /* so many, */
	u32 rest;                /* with so many bytes of this system call */
};

/* tokens parses what is in the window. The verifier checks a global function once, and not for each of its callers. */
__noinline int tokens(struct conn *c, struct feed *f)
{
	u32 zero = 0;
	if (!c || !f)
		return 0;
	struct parse q = {.c = c, .f = f, .w = bpf_map_lookup_elem(&scratches, &zero), .message = LIMIT};
	if (!q.w)
		return 0;
	if (c->tls)
		bpf_loop(LIMIT, tls_record, &q, 0);
	else if (f->request)
		bpf_loop(LIMIT, request_token, &q, 0);
	else
		bpf_loop(LIMIT, reply_token, &q, 0);
	return 0;
}

/* vector takes the next buffer of the system call. */
static __always_inline long vector(struct windows *q)
{
	struct feed *f = q->f;
	struct iovec one;
	if (!q->many || !q->rest)
		return STOP;
	if (bpf_probe_read_user(&one, sizeof(one), q->iov)) {
		f->bad = 1;
		return STOP;
	}
	q->iov++;
	q->many--;
	f->buf = (u64)one.iov_base;
	f->pos = 0;
	f->len = one.iov_len < q->rest ? one.iov_len : q->rest;
	q->rest -= f->len;
	return MORE;
}

/* window takes the next piece of the buffer: skips bodies, and parses the rest. */
static long window(u32 n, struct windows *q)
{
	struct feed *f = q->f;
	struct stream *s = f->request ? &q->c->req : &q->c->rep;
	if (f->bad)
		return STOP;
	if (f->pos >= f->len)
		return vector(q);
	u32 rest = f->len - f->pos;
	if (s->skip) {
		u32 some = s->skip < rest ? s->skip : rest;
		s->skip -= some;
		f->pos += some;
		f->seq += some;
		if (!s->skip && q->c->tls)
			tls_record_done(q->c, f, s);
		else if (!s->skip && !s->left && s->started)
			message_done(q->c, f, s, f->request, f->seq);
		return MORE;
	}
	u32 carry = s->carry_len;
	if (carry > CARRY - 1)
		carry = 0;
	__builtin_memcpy(q->w->data, s->carry, CARRY);
	u32 take = rest < WINDOW ? rest : WINDOW;
	if (bpf_probe_read_user(q->w->data + carry, take, (void *)(f->buf + f->pos))) {
		count(C_NO_BUFFER, 1);
		f->bad = 1;
		return STOP;
	}
	f->total = carry + take;
	f->i = 0;
	f->seq -= carry; /* of the first byte of the window */
	tokens(q->c, f);
	u32 left = f->total - f->i;
	if (f->bad)
		return STOP;
	if (left >= CARRY) { /* a token that is longer than any valid one */
		f->bad = 1;
		return STOP;
	}
	u32 i = f->i;
	if (left && i < LIMIT)
		__builtin_memcpy(s->carry, q->w->data + i, CARRY);
	s->carry_len = left;
	f->seq += f->total;
	f->pos += take;
	return MORE;
}

/* user_buffer gives the memory of the system call that is under way: one buffer, or a list of them. */
static __always_inline bool user_buffer(u64 *buf, const struct iovec **iov, u32 *many)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
	*buf = 0;
	*iov = NULL;
	switch (REG_NR(regs)) {
	case NR_read:
	case NR_write:
	case NR_recvfrom:
	case NR_sendto:
		*buf = REG_ARG2(regs);
		return true;
	case NR_readv:
	case NR_writev:
		*iov = (const struct iovec *)REG_ARG2(regs);
		*many = REG_ARG3(regs);
		return true;
	case NR_recvmsg:
	case NR_sendmsg: {
		struct {
			const struct iovec *iov;
			u64 many;
		} h;
		if (bpf_probe_read_user(&h, sizeof(h), &((struct user_msghdr *)REG_ARG2(regs))->msg_iov))
			return false;
		*iov = h.iov;
		*many = h.many;
		return true;
	}
	}
	return false;
}

/* fingerprint notes what the bytes of a system call are that has one request: two requests that are equal have the
 * same. No part of them is kept. A part of a request has none, nor has one that is sent before the reply to another. */
__noinline int fingerprint(struct conn *c, u32 len)
{
	if (!c)
		return 0;
	u64 buf, word[PRINT / 8] = {};
	const struct iovec *iov;
	u32 many;
	c->print = 0;
	if (c->tls || c->outstanding || c->req.started || !user_buffer(&buf, &iov, &many) || !buf)
		return 0;
	/* no more than there is: what is behind it may be in a page that is not there */
	u64 bytes = len < PRINT ? len : PRINT;
	asm volatile("" : "+r"(bytes)); /* the verifier looks at the register that is compared next */
	if (bytes > PRINT || bpf_probe_read_user(word, bytes, (void *)buf))
		return 0;
	u64 print = len;
	for (u32 i = 0; i < PRINT / 8; i++)
		print = (print ^ word[i]) * 0x9e3779b97f4a7c15ull;
	c->print = print | 1;
	return 0;
}

/* parse_syscall parses the bytes of a system call. It gives 0 where the order of calls is lost. */
__noinline int parse_syscall(struct conn *c, struct feed *f)
{
	if (!c || !f)
		return 0;
	u64 buf;
	const struct iovec *iov;
	u32 many = 0, zero = 0, reason = C_NO_BUFFER;
	struct scratch *w = bpf_map_lookup_elem(&scratches, &zero);
	if (!w)
		return 0;
	if (user_buffer(&buf, &iov, &many)) {
		struct windows q = {.c = c, .f = f, .w = w};
		if (buf) {
			f->buf = buf;
		} else {
			q.iov = iov;
			q.many = many;
			q.rest = f->len;
			f->len = 0;
		}
		bpf_loop(1 << 16, window, &q, 0);
		if (!q.rest)
			return !f->bad;
		reason = C_IOVECS;
	}
	count(reason, 1);
	return 0;
}

#endif
