/* TLS hides requests and replies: of a connection only request/response turns are seen, from the first record with
 * requests to the first with replies. Records of other types are none: alerts, such as the close_notify before the end
 * of an idle connection, session tickets, and those of the handshake, whose flights are turns of their own. The TLS
 * library knows what was requested in a turn. When SSL_read of a server returns, or SSL_write of a client, the
 * plaintext is in the memory of the thread, and the socket that the call read or wrote shows which connection it
 * belongs to. Libraries that get the bytes instead of the socket are never matched: their turns have no name. */
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

/* tls_opened: from now on, sealed records are requests and replies. */
static __always_inline void tls_opened(struct conn *c, struct feed *f)
{
	c->tls = TLS_OPEN;
	c->tickets = c->role == CLIENT; /* a server sends them before it reads the first request, see tls_request */
	f->finished = 1;
}

/* is_of_turn reports whether a record of the client is one of requests, or of a flight of the handshake.
 * len is the number of bytes behind its header. */
static __always_inline bool is_of_turn(struct conn *c, struct feed *f, u32 type, u32 len)
{
	if (type == TLS_HANDSHAKE)
		return c->tls == TLS_OPENING;
	if (type != TLS_DATA)
		return c->tls == TLS_OPENING && c->outstanding;
	if (c->tls == TLS_OPENING)
		c->tls = TLS_OPEN; /* up to TLS 1.2 all sealed records are data */
	if (c->tls == TLS_OPEN)
		return true;
	if (len == TLS_SEALED_FINISHED_256 || len == TLS_SEALED_FINISHED_384)
		tls_opened(c, f);
	else
		c->tls = TLS_CLIENT_SEALED;
	return false;
}

/* tls_request: a record of the client is complete. seq is that of the byte after it. */
__noinline int tls_request(struct conn *c, struct feed *f, u32 type, u32 seq)
{
	if (!c || !f)
		return 0;
	struct stream *s = &c->req;
	u32 len = s->bytes - TLS_HEADER;
	s->push = !is_of_turn(c, f, type, len);
	if (s->push)
		return 0;
	s->push = type == TLS_DATA && len == TLS_SEALED_ALERT;
	c->alert = s->push && (!c->outstanding || c->alert);
	if (c->outstanding) {
		struct pending *p = &c->ring[(c->tail - 1) & (RING - 1)];
		p->bytes += s->bytes;
		p->seq = seq;
		return 0;
	}
	if (c->role == SERVER && f->finished)
		c->tickets = 1;
	c->name[0] = c->name[1] = c->sub = 0;
	s->args = 0;
	push_requests(c, f, seq, 1);
	begin_tls_turn(c, f->slot);
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
	if (v->first.blocks && !(p->flags & F_BLOCKING)) {
		p->flags |= F_BLOCKING;
		__sync_fetch_and_add(&c->blocking, p->count);
	}
	if (has_no_calls(c->name[0])) {
		c->ignore = 1;
		count(C_PUSH, 1);
	}
	return 0;
}

/* answers reports whether a record of the server answers the turn under way, by its first bytes. */
static __always_inline bool answers(struct conn *c, struct feed *f, u32 type, u32 len)
{
	struct pending *p = &c->ring[c->head & (RING - 1)];
	bool opening = p->flags & F_OPENING;
	if (type == TLS_DATA && c->tls == TLS_OPENING)
		c->tls = TLS_SERVER_SEALED;
	else if (type == TLS_DATA && c->tls == TLS_CLIENT_SEALED)
		tls_opened(c, f);
	if (!c->outstanding)
		return false;
	return type == TLS_DATA ? !opening && len != TLS_SEALED_ALERT : opening;
}

/* tls_reply: the header of a record of the server. len is the number of bytes behind it, seq that of the byte after
 * the header. */
__noinline int tls_reply(struct conn *c, struct feed *f, u32 type, u32 len, u32 seq)
{
	if (!c || !f)
		return 0;
	struct stream *s = &c->rep;
	s->push = type != TLS_DATA || c->tls != TLS_OPEN || len == TLS_SEALED_ALERT;
	s->bytes = len + TLS_HEADER;
	if (!answers(c, f, type, len))
		return 0;
	name_turn(c);
	c->alert = 0;
	if (!c->ignore)
		pop_reply(c, f, seq);
	return 0;
}

/* tls_record_done: the last byte of a record of the client has passed. */
static __always_inline void tls_record_done(struct conn *c, struct feed *f, struct stream *s)
{
	if (f->request)
		tls_request(c, f, s->args, f->seq);
}

/* tls_record takes the header of a record, and skips what is behind it. */
static long tls_record(u32 n, struct parse *q)
{
	struct feed *f = q->f;
	struct conn *c = q->c;
	struct stream *s = f->request ? &c->req : &c->rep;
	u32 p = f->i, len;
	if (f->bad || p + TLS_HEADER > f->total || p >= LIMIT)
		return STOP;
	len = tls_length(q, p);
	if (!len) {
		f->bad = 1;
		return STOP;
	}
	u32 type = byte(q, p), body = p + TLS_HEADER, end = body + len;
	if (f->request) {
		struct mark *m = c->role == SERVER && !c->outstanding ? arrival(c, seq_at(q, p) + 1) : NULL;
		c->req_first = m ? m->ns : c->role == CLIENT ? c->send_start : 0;
		s->bytes = len + TLS_HEADER;
		s->args = type;
		s->push = 1; /* until it is complete */
	} else {
		tls_reply(c, f, type, len, seq_at(q, body));
	}
	if (end > f->total) {
		s->skip = end - f->total;
		f->i = f->total;
		return MORE;
	}
	f->i = end;
	if (f->request)
		tls_request(c, f, type, seq_at(q, end));
	return MORE;
}

/* no_data reports whether what has just passed of a stream ended with a record that is neither request nor reply. */
static __always_inline bool no_data(struct conn *c, struct stream *s)
{
	return c->tls && s->push;
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
