/* TLS hides requests and replies: of a connection only request/response turns are seen, from the first bytes of the
 * requests to the first of the replies. The TLS library knows what was requested in a turn. When SSL_read of a server
 * returns, or SSL_write of a client, the plaintext is in the memory of the thread, and the socket that the call read or
 * wrote shows which connection it belongs to. Libraries that get the socket's bytes instead of the socket are never
 * matched: their turns have no name. */
#ifndef SLOWPATH_TLS_H
#define SLOWPATH_TLS_H

struct tls_key {
	u64 ssl;
	u32 tgid;
	u32 unused;
};

/* by the library's object (SSL *), which lives as long as the connection and may then be used again */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, struct tls_key);
	__type(value, struct tls_parser);
} tls_parsers SEC(".maps");

const struct tls_parser no_tls_parser;

/* begin_tls_turn notes which plaintext names the turn that begins: that of the library's call under way in this thread,
 * if there is one. */
__noinline int begin_tls_turn(struct conn *c, u32 slot)
{
	if (!c)
		return 0;
	struct thread *t = thread_of(slot);
	c->ssl = t ? t->ssl : 0;
	if (!c->ssl)
		return 0;
	struct tls_key k = {.ssl = c->ssl, .tgid = c->tgid};
	struct tls_parser *v = bpf_map_lookup_elem(&tls_parsers, &k);
	if (!v || v->conn != c->cookie) {
		bpf_map_update_elem(&tls_parsers, &k, &no_tls_parser, 0);
		v = bpf_map_lookup_elem(&tls_parsers, &k);
		if (!v)
			return 0;
		v->conn = c->cookie;
	}
	v->calls = 0;
	v->turn = 1;
	return 0;
}

/* tls_request: bytes of requests under TLS. */
static __always_inline void tls_request(struct conn *c, struct feed *f)
{
	if (c->outstanding) {
		struct pending *p = &c->ring[(c->tail - 1) & (RING - 1)];
		p->bytes += f->len;
		p->seq = f->seq + f->len;
		return;
	}
	if (!c->aligned) { /* the parser had taken it for garbage */
		lose_order(c, C_GARBAGE);
		c->aligned = 1;
	}
	c->strict = 1; /* its replies go to tls_reply */
	c->name[0] = c->name[1] = c->sub = 0;
	c->req.bytes = f->len;
	c->req.args = 0;
	push_requests(c, f, f->seq + f->len, 1);
	begin_tls_turn(c, f->slot);
}

/* name_turn names the turn that is answered, if its plaintext was seen: by its first command, with the subcommand "+"
 * if it has several. */
__noinline int name_turn(struct conn *c)
{
	if (!c || !c->ssl)
		return 0;
	struct tls_key k = {.ssl = c->ssl, .tgid = c->tgid};
	struct tls_parser *v = bpf_map_lookup_elem(&tls_parsers, &k);
	if (!v || v->conn != c->cookie || !v->calls)
		return 0;
	c->name[0] = v->first.name[0];
	c->name[1] = v->first.name[1];
	c->sub = v->calls > 1 ? WORD('+', 0, 0, 0, 0, 0, 0, 0) : v->first.sub;
	struct pending *p = &c->ring[c->head & (RING - 1)];
	p->op = op_of(c);
	p->args = v->first.args;
	if (has_no_calls(c->name[0])) {
		c->ignore = 1;
		count(C_PUSH, 1);
	}
	return 0;
}

/* tls_reply: bytes of replies under TLS. */
static __always_inline void tls_reply(struct conn *c, struct feed *f)
{
	if (!c->outstanding)
		return;
	name_turn(c);
	if (c->ignore)
		return;
	c->rep.bytes = f->len;
	pop_reply(c, f, f->seq + f->len);
}

/* tls_feed is plaintext that is parsed. */
struct tls_feed {
	struct tls_parser *v;
	u64 buf;
	u64 pos, len;
	struct command first; /* request that ended in it, */
	u32 calls;            /* and how many did */
	u32 bad;
};

/* tls_word takes up to 8 of len bytes of the token, beginning at `at`. */
static __always_inline u64 tls_word(struct tls_parser *v, u32 at, s64 len)
{
	if (len <= 0)
		return 0;
	barrier_var(at);
	at &= TOKEN - 1;
	u64 w = *(u64 *)(v->token + at);
	return upper(len < 8 ? w & ((1ull << (len * 8)) - 1) : w);
}

static __always_inline void tls_request_done(struct tls_feed *p)
{
	struct tls_parser *v = p->v;
	if (!p->calls++)
		p->first = v->next;
	if (!v->calls++)
		v->first = v->next;
}

/* tls_number reads the number of "*3\r\n" at the beginning of the token. It gives the place behind it; 0: its end has
 * not arrived yet; TOKEN: it is no number. */
static __always_inline u32 tls_number(struct tls_parser *v, u32 total, u64 *number)
{
	*number = 0;
	for (u32 i = 1; i < 13; i++) {
		if (i + 1 >= total)
			return 0;
		u8 ch = v->token[i];
		if (ch == '\r')
			return v->token[i + 1] == '\n' && i > 1 ? i + 2 : TOKEN;
		if (ch < '0' || ch > '9')
			return TOKEN;
		*number = *number * 10 + (ch - '0');
	}
	return TOKEN;
}

/* tls_token takes one "*3\r\n", or one "$5\r\n" with its body, as resp.h does; what is incomplete is kept for the next
 * plaintext. */
static long tls_token(u32 n, struct tls_feed *p)
{
	struct tls_parser *v = p->v;
	u64 rest = p->len - p->pos;
	if (p->bad || p->pos >= p->len)
		return STOP;
	if (!v->skip) {
		u32 have = v->token_len & (TOKEN - 1), take = TOKEN - have, total, end;
		u64 number;
		if (take > rest)
			take = rest;
		total = have + take;
		if (bpf_probe_read_user(v->token + have, take & (2 * TOKEN - 1), (void *)(p->buf + p->pos))) {
			p->bad = 1;
			return STOP;
		}
		end = tls_number(v, total, &number);
		if (v->token[0] != (v->left ? '$' : '*') || end == TOKEN || (!v->left && number > 1 << 24)) {
			p->bad = 1; /* or an inline command, which is left unnamed */
			return STOP;
		}
		s64 need = !v->left || !v->want ? 0 : v->want == WANT_NAME ? NAME : 8;
		if (need > number)
			need = number;
		if (!end || end + need > total) {
			v->token_len = total;
			p->pos = p->len;
			return STOP;
		}
		u32 used = end > have ? end : have; /* a part of a body that was kept is already behind */
		v->token_len = 0;
		p->pos += used - have;
		if (!v->left) {
			__builtin_memset(&v->next, 0, sizeof(v->next));
			v->left = v->next.args = number;
			v->want = WANT_NAME;
			return MORE;
		}
		if (v->want == WANT_NAME) {
			v->next.name[0] = tls_word(v, end, number);
			v->next.name[1] = tls_word(v, end + 8, number - 8);
			v->want = has_subcommands(v->next.name[0]) ? WANT_SUBCOMMAND : WANT_NOTHING;
		} else if (v->want == WANT_SUBCOMMAND) {
			v->next.sub = tls_word(v, end, number);
			v->want = WANT_NOTHING;
		}
		v->left--;
		v->skip = number + 2 - (used - end);
		rest = p->len - p->pos;
	}
	u64 some = v->skip < rest ? v->skip : rest;
	v->skip -= some;
	p->pos += some;
	if (!v->skip && !v->left)
		tls_request_done(p);
	return MORE;
}

/* plaintext parses what was read from, or written to, a connection. Its first plaintext begins a request only if it
 * comes with a turn. */
__noinline int plaintext(struct thread *t, struct tls_parser *v, u64 buf, u64 len)
{
	if (!t || !v)
		return 0;
	struct tls_feed p = {.v = v, .buf = buf, .len = len};
	if (!v->sure) {
		if (!v->turn)
			return 0;
		v->skip = v->left = v->token_len = 0;
	}
	v->turn = 0;
	bpf_loop(1 << 13, tls_token, &p, 0);
	v->sure = !p.bad && p.pos >= p.len;
	if (!v->sure) {
		v->calls = 0;
		return 0;
	}
	struct activity *activity = &t->activity;
	if (!p.calls || t->open != UNDER_WAY || activity->conn != v->conn)
		return 0;
	if (activity->name[0]) {
		activity->calls += p.calls;
		return 0;
	}
	activity->name[0] = p.first.name[0];
	activity->name[1] = p.first.name[1];
	activity->sub = p.first.sub;
	activity->args = p.first.args;
	activity->calls = p.calls;
	return 0;
}

/* on_ssl_call: SSL_read of a server or SSL_write of a client begins. It may be the first event of a thread of the
 * server. */
SEC("uprobe.multi")
int on_ssl_call(struct pt_regs *ctx)
{
	u32 slot;
	struct thread *t = bpf_get_attach_cookie(ctx) & OF_SERVER ? current_thread(monotonic_ns(), &slot, true)
								  : watched(bpf_get_current_task_btf(), &slot);
	if (!t)
		return 0;
	t->ssl = REG_ARG1(ctx);
	t->ssl_buf = REG_ARG2(ctx);
	t->ssl_len = REG_ARG4(ctx);
	return 0;
}

SEC("uretprobe.multi")
int on_ssl_return(struct pt_regs *ctx)
{
	u32 slot;
	struct thread *t = watched(bpf_get_current_task_btf(), &slot);
	if (!t || !t->ssl)
		return 0;
	struct tls_key k = {.ssl = t->ssl, .tgid = t->tgid};
	t->ssl = 0;
	u64 len = 0;
	s32 ret = REG_RET(ctx);
	if (ret <= 0)
		return 0;
	if (!(bpf_get_attach_cookie(ctx) & BY_POINTER))
		len = ret;
	else if (bpf_probe_read_user(&len, sizeof(len), (void *)t->ssl_len))
		return 0;
	struct tls_parser *v = bpf_map_lookup_elem(&tls_parsers, &k);
	if (v)
		plaintext(t, v, t->ssl_buf, len);
	return 0;
}

#endif
