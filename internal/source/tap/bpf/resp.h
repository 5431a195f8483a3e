/* RESP, as far as it must be read to know where each request and each reply ends: headers are read, bodies are skipped.
 * */
#ifndef SLOWPATH_RESP_H
#define SLOWPATH_RESP_H

enum { LIMIT = WINDOW + CARRY, LINE = 128 };

struct parse {
	struct feed *f;
	struct conn *c;
	struct scratch *w;
	u32 message; /* where in the window the message began; LIMIT: before it */
	u32 head;    /* request: end of what is before its key, */
	u32 key;     /* end of the key, */
	u32 value;   /* beginning of the value */
};

/* byte gives a byte of the window. The mask is for the verifier, which does not follow sums; the compiler must not see
 * through it. */
static __always_inline u8 byte(struct parse *q, u32 p)
{
	barrier_var(p);
	p &= MASK;
	return q->w->data[p];
}

/* line_end gives the place behind the next "\n" within LINE bytes of p; 0: there is none. */
__noinline u32 line_end(u32 p, u32 total)
{
	u32 zero = 0;
	struct scratch *w = bpf_map_lookup_elem(&scratches, &zero);
	if (!w)
		return 0;
	struct parse q = {.w = w};
	for (u32 n = 0; n < LINE; n++) {
		if (p >= total)
			return 0;
		if (byte(&q, p) == '\n')
			return p + 1;
		p++;
	}
	return 0;
}

/* header reads the number of "*3\r\n" at p. It gives the number and, in the lowest 16 bits, the place behind it; 0: its
 * end has not arrived yet; LIMIT: it is no number. */
__noinline s64 header(u32 p, u32 total)
{
	u32 zero = 0;
	struct scratch *w = bpf_map_lookup_elem(&scratches, &zero);
	s64 v = 0;
	bool minus = false;
	if (!w)
		return LIMIT;
	struct parse q = {.w = w};
	for (u32 n = 0; n < 14; n++) {
		p++;
		if (p + 1 >= total)
			return 0;
		u8 c = byte(&q, p);
		if (c == '\r')
			return byte(&q, p + 1) == '\n' ? (minus ? -v : v) << 16 | (p + 2) : LIMIT;
		if (c == '-' && n == 0)
			minus = true;
		else if (c >= '0' && c <= '9')
			v = v * 10 + (c - '0');
		else
			return LIMIT;
	}
	return LIMIT;
}

/* word takes up to 8 of len bytes at p. The scratch has room behind LIMIT, so that it may read past the end. */
static __always_inline u64 word(struct parse *q, u32 p, s64 len)
{
	if (len <= 0 || p >= LIMIT)
		return 0;
	barrier_var(p);
	p &= MASK;
	u64 w = *(u64 *)(q->w->data + p);
	if (len < 8)
		w &= (1ull << (len * 8)) - 1;
	return upper(w);
}

/* keep_word keeps a bulk string of a request that is part of what identifies the command. */
static __always_inline void keep_word(struct parse *q, struct stream *s, u32 body, s64 len)
{
	struct conn *c = q->c;
	switch (s->want) {
	case WANT_NAME:
		c->name[0] = word(q, body, len);
		c->name[1] = word(q, body + 8, len - 8);
		c->sub = c->arg = 0;
		s->want = wanted_after_name(c->name[0]);
		break;
	case WANT_SUBCOMMAND:
		c->sub = word(q, body, len);
		s->want = c->sub == WORD('R', 'E', 'P', 'L', 'Y', 0, 0, 0) || c->sub == SETINFO || c->sub == SETNAME ?
				  WANT_ARGUMENT : WANT_NOTHING;
		break;
	case WANT_ARGUMENT:
		c->arg = word(q, body, len);
		c->announces = is_observer_name(c->arg, word(q, body + 8, len - 8));
		s->want = c->sub == SETINFO ? WANT_LIBRARY : WANT_NOTHING;
		break;
	case WANT_OPTION: {
		u64 option = word(q, body, len);
		s->want = wanted_after_option(option);
		if (option == BLOCK)
			c->arg = BLOCK;
		break;
	}
	case WANT_OPTION_AFTER_ONE:
		s->want = WANT_OPTION;
		break;
	case WANT_OPTION_AFTER_TWO:
		s->want = WANT_OPTION_AFTER_ONE;
		break;
	case WANT_LIBRARY: /* the name of a client library, or its version: a command of its own, see op_of */
		c->name[1] = word(q, body, len);
		s->want = WANT_NOTHING;
	}
}

/* eight gives eight bytes of the window. */
static __always_inline u64 eight(struct parse *q, u32 p)
{
	barrier_var(p);
	p &= MASK;
	return *(u64 *)(q->w->data + p);
}

/* low is a mask of the first n bytes of a word. */
static __always_inline u64 low(u32 n)
{
	return n >= 8 ? ~0ull : n ? (1ull << (n * 8)) - 1 : 0;
}

static __always_inline u32 minus(u32 a, u32 b)
{
	return a > b ? a - b : 0;
}

/* remember_request keeps the shape of a request that ended at a place of the window. */
__noinline int remember_request(struct conn *c, u32 message, u32 head, u32 key, u32 value_end)
{
	u32 zero = 0;
	struct scratch *w = bpf_map_lookup_elem(&scratches, &zero);
	if (!c || !w)
		return 0;
	struct parse p = {.w = w}, *q = &p;
	u32 value = value_end >> 16, end = value_end & 0xffff;
	struct shape *s = &c->shape;
	s->len = 0;
	u32 args = c->req.args;
	if (!c->ordinary || args > 3 || message >= end)
		return 0;
	u32 n = (args == 1 ? end : head) - message;
	if (n > 32 || (args == 3 && (value <= key || value - key > 16)))
		return 0;
	for (u32 i = 0; i < 4; i++) {
		s->head_mask[i] = low(minus(n, i * 8));
		s->head[i] = eight(q, message + i * 8) & s->head_mask[i];
	}
	s->tail_at = 0;
	if (args == 3) {
		s->tail_at = key - message;
		for (u32 i = 0; i < 2; i++) {
			s->tail_mask[i] = low(minus(value - key, i * 8));
			s->tail[i] = eight(q, key + i * 8) & s->tail_mask[i];
		}
	}
	s->args = args;
	s->len = end - message;
	return 0;
}

/* same_request reports whether the request at p has the shape of the one before. All bytes that decide where something
 * begins or ends are compared. */
static __always_inline bool same_request(struct parse *q, struct shape *s, u32 p)
{
	u64 differ = (eight(q, p) & s->head_mask[0]) ^ s->head[0];
	differ |= (eight(q, p + 8) & s->head_mask[1]) ^ s->head[1];
	differ |= (eight(q, p + 16) & s->head_mask[2]) ^ s->head[2];
	differ |= (eight(q, p + 24) & s->head_mask[3]) ^ s->head[3];
	if (s->tail_at) {
		differ |= (eight(q, p + s->tail_at) & s->tail_mask[0]) ^ s->tail[0];
		differ |= (eight(q, p + s->tail_at + 8) & s->tail_mask[1]) ^ s->tail[1];
	}
	return !differ;
}

static __always_inline void message_done(struct conn *c, struct feed *f, struct stream *s, bool request, u32 seq)
{
	s->started = 0;
	if (request)
		push_requests(c, f, seq, 1);
	else if (!s->push)
		pop_reply(c, f, seq);
}

/* skip_body skips the body of a bulk string, "\r\n" included; what is not in the window comes later. */
static __always_inline void skip_body(struct parse *q, struct stream *s, u32 body, u64 len, bool request, u32 token_seq,
				      u32 from)
{
	u64 end = (u64)body + len;
	s->bytes += end - from;
	s->left--;
	if (end <= q->f->total) {
		q->f->i = end;
		if (!s->left)
			message_done(q->c, q->f, s, request, token_seq + ((u32)end - from));
	} else {
		s->skip = end - q->f->total;
		q->f->i = q->f->total;
	}
}

/* seq_at is the TCP sequence number of the byte at a place of the window. */
static __always_inline u32 seq_at(struct parse *q, u32 p)
{
	return q->f->seq + p;
}

/* is_first_token: the token at p is the first of its message. */
static __always_inline bool is_first_token(struct parse *q, u32 p)
{
	return q->message == p;
}

static __always_inline void remember_reply(struct parse *q, u32 p, u32 head, u32 len)
{
	struct reply_shape *r = &q->c->reply_shape;
	if (head > 8)
		return;
	r->mask = low(head);
	r->head = eight(q, p) & r->mask;
	r->len = len;
}

/* is_no_request: an inline command that is an empty line, the header of a proxy (PROXY protocol, version 1), or a
 * request of HTTP, as health checks of load balancers send it: then the connection has no calls. */
static __always_inline bool is_no_request(struct parse *q, u32 end)
{
	struct conn *c = q->c;
	if (!c->name[0])
		return true;
	if (c->calls || c->outstanding || end < 10)
		return false;
	u64 last = eight(q, end - 10);
	bool http = last == WORD('H', 'T', 'T', 'P', '/', '1', '.', '0') ||
		    last == WORD('H', 'T', 'T', 'P', '/', '1', '.', '1');
	if (!http && c->name[0] != WORD('P', 'R', 'O', 'X', 'Y', 0, 0, 0))
		return false;
	count(C_NOT_REDIS, 1);
	if (http) {
		c->ignore = 1;
		q->f->bad = 1;
	}
	return true;
}

static __always_inline int line_token(struct parse *q, struct stream *s, u32 p, bool request)
{
	u32 end = line_end(p, q->f->total);
	if (!end) {
		u32 stop = p + LINE < q->f->total ? p + LINE : q->f->total;
		s->bytes += stop - p;
		s->line = 1;
		q->f->i = stop;
		return MORE;
	}
	bool only = !request && !s->line && s->left == 1 && is_first_token(q, p) && end - p <= 8;
	s->bytes += end - p;
	s->line = 0;
	q->f->i = end;
	s->left--;
	if (s->left)
		return MORE;
	if (request && is_no_request(q, end)) {
		s->started = 0;
		return MORE;
	}
	message_done(q->c, q->f, s, request, seq_at(q, end));
	if (only && !s->error) /* errors are counted one by one */
		remember_reply(q, p, end - p, end - p);
	return MORE;
}

static __always_inline int bulk_token(struct parse *q, struct stream *s, u32 p, bool request)
{
	s64 h = header(p, q->f->total), len = h >> 16;
	u32 body = h & 0xffff;
	if (!body)
		return STOP;
	if (body == LIMIT || len > (1ll << 40) || (request && len < 0)) {
		q->f->bad = 1;
		return STOP;
	}
	if (request && s->want && len > 0) {
		s64 need = len < NAME ? len : NAME;
		if (body + need > q->f->total)
			return STOP; /* the name is not there yet */
		keep_word(q, s, body, len);
	}
	if (request) {
		u32 arg = s->args - s->left;
		if (arg == 1) {
			q->head = body;
			q->key = body + len;
		} else if (arg == 2) {
			q->value = body;
		}
	}
	if (len < 0) { /* null */
		bool only = s->left == 1 && is_first_token(q, p);
		s->bytes += body - p;
		s->left--;
		q->f->i = body;
		if (!s->left)
			message_done(q->c, q->f, s, request, seq_at(q, body));
		if (only)
			remember_reply(q, p, body - p, body - p);
		return MORE;
	}
	u32 end = body + (u32)len + 2;
	bool whole = s->left == 1 && len < WINDOW && end <= q->f->total;
	bool only = !request && whole && is_first_token(q, p);
	skip_body(q, s, body, len + 2, request, seq_at(q, p), p);
	if (request && whole && q->message < LIMIT)
		remember_request(q->c, q->message, q->head, q->key, q->value << 16 | end);
	if (only)
		remember_reply(q, p, body - p, end - p);
	return MORE;
}

/* equal_request takes the request at p if it has the shape of the one before. */
static __always_inline bool equal_request(struct parse *q, struct stream *s, u32 p)
{
	struct shape *shape = &q->c->shape;
	u32 end = p + shape->len;
	if (!shape->len || s->started || !q->c->aligned || end > q->f->total || !same_request(q, shape, p))
		return false;
	s->bytes = shape->len;
	s->args = shape->args;
	q->f->i = end;
	push_requests(q->c, q->f, seq_at(q, end), 1);
	return true;
}

/* equal_reply takes the reply at p if it has the shape of the one before, and is not to be reported. */
static __always_inline bool equal_reply(struct parse *q, struct stream *s, u32 p)
{
	struct reply_shape *shape = &q->c->reply_shape;
	u32 end = p + shape->len;
	if (!shape->len || s->started || end > q->f->total || (eight(q, p) & shape->mask) != shape->head)
		return false;
	s->bytes = shape->len;
	s->error = 0;
	if (!pop_replies(q->c, q->f, 1))
		return false;
	q->f->i = end;
	return true;
}

/* tls_length is the number of bytes behind the header of a TLS record at p; 0: that is none. */
static __always_inline u32 tls_length(struct parse *q, u32 p)
{
	u8 type = byte(q, p);
	u32 len = (u32)byte(q, p + 3) << 8 | byte(q, p + 4);
	return type >= TLS_CHANGE_CIPHER && type <= TLS_DATA && byte(q, p + 1) == TLS_VERSION && len <= TLS_RECORD_MAX ? len
															 : 0;
}

static __always_inline bool is_tls_record(struct parse *q, u32 p)
{
	return p + TLS_HEADER <= q->f->total && tls_length(q, p);
}

/* proxy_header skips the header of the PROXY protocol, version 2, with which a proxy may begin a connection. */
static __always_inline bool proxy_header(struct parse *q, struct stream *s, u32 p)
{
	u32 total = q->f->total;
	if (q->c->calls || q->c->outstanding || !q->c->aligned || p + 16 > total ||
	    eight(q, p) != 0x510a0d000a0d0a0d || (u32)eight(q, p + 8) != 0x0a544955)
		return false;
	u32 end = p + 16 + ((u32)byte(q, p + 14) << 8 | byte(q, p + 15));
	s->skip = end > total ? end - total : 0;
	q->f->i = end > total ? total : end;
	count(C_NOT_REDIS, 1);
	return true;
}

/* inline_command takes the first token of a request that is no array: an inline command, or an empty line. */
static __always_inline long inline_command(struct parse *q, struct stream *s, u32 p, u8 ch)
{
	if (is_tls_record(q, p))
		q->c->tls = ch == TLS_HANDSHAKE ? TLS_OPENING : TLS_OPEN;
	if (!q->c->aligned || ch > 0x7e || (ch < 0x20 && ch != '\r' && ch != '\n')) {
		q->f->bad = 1;
		return STOP;
	}
	if (ch > ' ') {
		u64 w = word(q, p, 8);
		u64 keep = 0;
		for (u32 b = 0; b < 8; b++) {
			u8 x = w >> (b * 8);
			if (x <= ' ' || p + b >= q->f->total)
				break;
			keep |= (u64)x << (b * 8);
		}
		q->c->name[0] = keep;
	}
	s->left = 1;
	s->args = 1;
	return line_token(q, s, p, true);
}

/* request_header takes the "*3\r\n" of a request. */
static __always_inline long request_header(struct parse *q, struct stream *s, u32 p)
{
	s64 h = header(p, q->f->total), args = h >> 16;
	u32 end = h & 0xffff;
	if (!end)
		return STOP;
	if (end == LIMIT || args > 1 << 24) {
		q->f->bad = 1;
		return STOP;
	}
	q->f->i = end;
	s->bytes += end - p;
	q->message = p;
	q->head = end;
	q->key = q->value = 0;
	if (args <= 0) {
		s->started = 0;
		return MORE;
	}
	s->left = s->args = args;
	s->want = WANT_NAME;
	return MORE;
}

static long request_token(u32 n, struct parse *q)
{
	struct stream *s = &q->c->req;
	u32 p = q->f->i;
	if (q->f->bad || p >= q->f->total || p >= LIMIT)
		return STOP;
	if (equal_request(q, s, p))
		return MORE;
	if (s->line)
		return line_token(q, s, p, true);
	u8 ch = byte(q, p);
	if (!s->started && ch == '\r' && proxy_header(q, s, p))
		return MORE;
	if (s->left) {
		if (ch != '$') {
			q->f->bad = 1;
			return STOP;
		}
		return bulk_token(q, s, p, true);
	}
	if (!s->started) {
		s->started = 1;
		s->bytes = 0;
		struct mark *m = q->c->role == SERVER ? arrival(q->c, seq_at(q, p) + 1) : NULL;
		q->c->req_first = m ? m->ns : q->c->role == CLIENT ? q->c->send_start : 0;
	}
	q->c->name[0] = q->c->name[1] = q->c->sub = q->c->arg = 0;
	return ch == '*' ? request_header(q, s, p) : inline_command(q, s, p, ch);
}

/* error_name keeps the first word of an error reply, from p on. What is no name in upper case, of 16 letters at most,
 * may be data of an application's own script, and is not kept. */
static __always_inline void error_name(struct parse *q, u32 p)
{
	struct conn *c = q->c;
	u32 n = 0, total = q->f->total;
	u8 ch = p < total ? byte(q, p) : 0;
	c->error_name[0] = c->error_name[1] = 0;
	while (n < 16 && ch >= 'A' && ch <= 'Z') {
		c->error_name[n >> 3 & 1] |= (u64)ch << ((n & 7) * 8);
		n++;
		ch = p + n < total ? byte(q, p + n) : 0;
	}
	if (ch != ' ' && ch != '\r')
		c->error_name[0] = c->error_name[1] = 0;
}

/* reply_header takes the "*3\r\n" of an array, or of another type with elements. */
static __always_inline long reply_header(struct parse *q, struct stream *s, u32 p, u8 ch)
{
	s64 h = header(p, q->f->total), many = h >> 16;
	u32 end = h & 0xffff;
	if (!end)
		return STOP;
	if (end == LIMIT || many > 1ll << 31) {
		q->f->bad = 1;
		return STOP;
	}
	s->bytes += end - p;
	q->f->i = end;
	if (many < 0)
		many = 0;
	if (ch == '%' || ch == '|')
		many *= 2;
	if (ch != '|') /* an attribute comes before its reply */
		s->left--;
	s->left += many;
	if (!s->left)
		message_done(q->c, q->f, s, false, seq_at(q, end));
	return MORE;
}

static long reply_token(u32 n, struct parse *q)
{
	struct stream *s = &q->c->rep;
	u32 p = q->f->i;
	if (q->f->bad || p >= q->f->total || p >= LIMIT)
		return STOP;
	if (equal_reply(q, s, p))
		return MORE;
	if (s->line)
		return line_token(q, s, p, false);
	u8 ch = byte(q, p);
	if (!s->started) {
		s->started = 1;
		s->left = 1;
		s->bytes = 0;
		q->message = p;
		s->push = ch == '>';
		s->error = ch == '-' || ch == '!';
		if (s->error)
			error_name(q, p + 1);
	}
	switch (ch) {
	case '+':
	case '-':
	case ':':
	case ',':
	case '#':
	case '_':
	case '(':
		return line_token(q, s, p, false);
	case '$':
	case '=':
	case '!':
		return bulk_token(q, s, p, false);
	case '*':
	case '~':
	case '%':
	case '>':
	case '|':
		return reply_header(q, s, p, ch);
	}
	q->f->bad = 1;
	return STOP;
}

#endif
