/* Plaintext under TLS: the TLS library knows what was requested in a turn. When SSL_read of a server returns, or
 * SSL_write of a client, the plaintext is in the memory of the thread, and the socket that the call read or wrote shows
 * which connection it belongs to. Libraries that get the bytes instead of the socket are never matched: their turns
 * have no name. */
#ifndef SLOWPATH_PLAINTEXT_H
#define SLOWPATH_PLAINTEXT_H

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

/* tls_blocks reports whether a request of the turn under way waits by design. */
static __always_inline bool tls_blocks(struct conn *c)
{
	if (!c->tls || !c->ssl)
		return false;
	struct tls_key k = {.ssl = c->ssl, .tgid = c->tgid};
	struct tls_parser *v = bpf_map_lookup_elem(&tls_parsers, &k);
	return v && v->conn == c->cookie && v->calls && v->first.blocks;
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
	u32 blocks = v->calls ? v->first.blocks : 0;
	if (!v->calls++)
		v->first = v->next;
	v->first.blocks = blocks | v->next.blocks; /* the turn has to wait for each of its requests */
}

/* tls_number reads the number of "*3\r\n" at the beginning of the token. It gives the place behind it; 0: its end has
 * not arrived yet; TOKEN: it is no number. The kernel checks a function of its own once, and not for each path to it,
 * of which there are many: this one takes a second less. */
__noinline int tls_number(struct tls_parser *v, u32 total, u64 *number)
{
	if (!v || !number)
		return TOKEN;
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

/* tls_argument takes what is wanted behind the name of a command. */
static __always_inline void tls_argument(struct tls_parser *v, u64 word)
{
	if (v->want == WANT_SUBCOMMAND) {
		v->next.sub = word;
		v->want = WANT_NOTHING;
	} else if (v->want == WANT_OPTION) {
		v->next.blocks |= word == BLOCK;
		v->want = wanted_after_option(word);
	} else {
		v->want = v->want == WANT_OPTION_AFTER_TWO ? WANT_OPTION_AFTER_ONE : WANT_OPTION;
	}
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
		end = (u32)tls_number(v, total, &number);
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
			v->next.blocks = blocks_by_design(v->next.name[0], 0);
			v->want = wanted_after_name(v->next.name[0]);
		} else if (v->want) {
			tls_argument(v, tls_word(v, end, number));
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
