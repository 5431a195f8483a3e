/* RESP, as far as one must read it to know where each request and each reply ends: headers are read, bodies are skipped. */
#ifndef SLOWPATH_RESP_H
#define SLOWPATH_RESP_H

enum { LIMIT = WINDOW + CARRY };
enum { MORE = 0, STOP = 1 };

struct parse {
	struct feed *f;
	struct conn *c;
	struct scratch *w;
};

/* byte gives a byte of the window. The mask is for the verifier, which does not follow sums; the compiler must not see through it. */
static __always_inline u8 byte(struct parse *q, u32 p)
{
	barrier_var(p);
	p &= MASK;
	return q->w->data[p];
}

/* line_end gives the place behind the next "\n" within some bytes of p; 0: it is not there. */
static __always_inline u32 line_end(struct parse *q, u32 p)
{
	for (u32 n = 0; n < 128; n++) {
		if (p >= q->f->total || p >= LIMIT)
			return 0;
		if (byte(q, p) == '\n')
			return p + 1;
		p++;
	}
	return 0;
}

/* header reads the number of "*3\r\n" at p. It gives the place behind it; 0: its end is not there yet; LIMIT: it is no number. */
static __always_inline u32 header(struct parse *q, u32 p, s64 *value)
{
	s64 v = 0;
	bool minus = false;
	for (u32 n = 0; n < 20; n++) {
		p++;
		if (p + 1 >= q->f->total || p + 1 >= LIMIT)
			return 0;
		u8 c = byte(q, p);
		if (c == '\r') {
			*value = minus ? -v : v;
			return byte(q, p + 1) == '\n' ? p + 2 : LIMIT;
		}
		if (c == '-' && n == 0)
			minus = true;
		else if (c >= '0' && c <= '9')
			v = v * 10 + (c - '0');
		else
			return LIMIT;
	}
	return LIMIT;
}

/* upper makes the letters of eight bytes upper case. */
static __always_inline u64 upper(u64 x)
{
	u64 ones = 0x0101010101010101ull;
	u64 seven = x & 0x7f * ones;
	u64 ge_a = seven + (0x80 - 'a') * ones;
	u64 gt_z = seven + (0x7f - 'z') * ones;
	u64 lower = (ge_a ^ gt_z) & ~x & 0x80 * ones;
	return x - (lower >> 2);
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

static __always_inline bool has_subcommands(u64 name)
{
	return name == WORD('C', 'L', 'I', 'E', 'N', 'T', 0, 0) || name == WORD('C', 'L', 'U', 'S', 'T', 'E', 'R', 0) ||
	       name == WORD('C', 'O', 'N', 'F', 'I', 'G', 0, 0) || name == WORD('C', 'O', 'M', 'M', 'A', 'N', 'D', 0) ||
	       name == WORD('D', 'E', 'B', 'U', 'G', 0, 0, 0) || name == WORD('M', 'E', 'M', 'O', 'R', 'Y', 0, 0) ||
	       name == WORD('S', 'C', 'R', 'I', 'P', 'T', 0, 0) || name == WORD('L', 'A', 'T', 'E', 'N', 'C', 'Y', 0) ||
	       name == WORD('S', 'L', 'O', 'W', 'L', 'O', 'G', 0) || name == WORD('A', 'C', 'L', 0, 0, 0, 0, 0) ||
	       name == WORD('X', 'I', 'N', 'F', 'O', 0, 0, 0) || name == WORD('O', 'B', 'J', 'E', 'C', 'T', 0, 0);
}

/* keep_word remembers a bulk string of a request that says what the command is. */
static __always_inline void keep_word(struct parse *q, struct stream *s, u32 body, s64 len)
{
	struct conn *c = q->c;
	switch (s->want) {
	case 1:
		c->name[0] = word(q, body, len);
		c->name[1] = word(q, body + 8, len - 8);
		c->sub = c->arg = 0;
		s->want = has_subcommands(c->name[0]) ? 2 : 0;
		break;
	case 2:
		c->sub = word(q, body, len);
		s->want = c->sub == WORD('R', 'E', 'P', 'L', 'Y', 0, 0, 0) ? 3 : 0;
		break;
	case 3:
		c->arg = word(q, body, len);
		s->want = 0;
	}
}

static __always_inline void message_done(struct parse *q, struct stream *s, bool request, u32 seq)
{
	s->started = 0;
	if (request)
		push_request(q->c, q->f, seq);
	else if (!s->push)
		pop_reply(q->c, q->f, seq);
}

/* skip leaves out the body of a bulk string, "\r\n" included; what is not in the window comes later. */
static __always_inline void skip_body(struct parse *q, struct stream *s, u32 body, u64 len, bool request, u32 token_seq, u32 from)
{
	u64 end = (u64)body + len;
	s->bytes += end - from;
	s->left--;
	if (end <= q->f->total) {
		q->f->i = end;
		if (!s->left)
			message_done(q, s, request, token_seq + ((u32)end - from));
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

static __always_inline bool c_has_name(struct conn *c)
{
	return c->name[0] != 0;
}

static __always_inline int line_token(struct parse *q, struct stream *s, u32 p, bool request)
{
	u32 end = line_end(q, p);
	if (!end) {
		u32 stop = p + 128 < q->f->total ? p + 128 : q->f->total;
		s->bytes += stop - p;
		s->line = 1;
		q->f->i = stop;
		return MORE;
	}
	s->bytes += end - p;
	s->line = 0;
	q->f->i = end;
	s->left--;
	if (s->left)
		return MORE;
	if (request && !c_has_name(q->c)) { /* an empty line: no request */
		s->started = 0;
		return MORE;
	}
	message_done(q, s, request, seq_at(q, end));
	return MORE;
}

static __always_inline int bulk_token(struct parse *q, struct stream *s, u32 p, bool request)
{
	s64 len = 0;
	u32 body = header(q, p, &len);
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
	if (len < 0) { /* null */
		s->bytes += body - p;
		s->left--;
		q->f->i = body;
		if (!s->left)
			message_done(q, s, request, seq_at(q, body));
		return MORE;
	}
	skip_body(q, s, body, len + 2, request, seq_at(q, p), p);
	return MORE;
}

static long request_token(u32 n, struct parse *q)
{
	struct stream *s = &q->c->req;
	u32 p = q->f->i;
	if (q->f->bad || p >= q->f->total || p >= LIMIT)
		return STOP;
	if (s->line)
		return line_token(q, s, p, true);
	u8 ch = byte(q, p);
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
	}
	q->c->name[0] = q->c->name[1] = q->c->sub = q->c->arg = 0;
	if (ch != '*') { /* an inline command, or an empty line */
		if (ch > 0x7e || (ch < 0x20 && ch != '\r' && ch != '\n')) {
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
	s64 args = 0;
	u32 end = header(q, p, &args);
	if (!end)
		return STOP;
	if (end == LIMIT || args > 1 << 24) {
		q->f->bad = 1;
		return STOP;
	}
	q->f->i = end;
	s->bytes += end - p;
	if (args <= 0) {
		s->started = 0;
		return MORE;
	}
	s->left = s->args = args;
	s->want = 1;
	return MORE;
}

static long reply_token(u32 n, struct parse *q)
{
	struct stream *s = &q->c->rep;
	u32 p = q->f->i;
	if (q->f->bad || p >= q->f->total || p >= LIMIT)
		return STOP;
	if (s->line)
		return line_token(q, s, p, false);
	u8 ch = byte(q, p);
	if (!s->started) {
		s->started = 1;
		s->left = 1;
		s->bytes = 0;
		s->push = ch == '>';
		s->error = ch == '-' || ch == '!';
		struct mark *m = q->c->role == CLIENT ? arrival(q->c, seq_at(q, p) + 1) : NULL;
		q->c->rep_first = m ? m->ns : q->f->now;
	}
	s64 many = 0;
	u32 end;
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
		end = header(q, p, &many);
		if (!end)
			return STOP;
		if (end == LIMIT || many > 1ll << 31)
			break;
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
			message_done(q, s, false, seq_at(q, end));
		return MORE;
	}
	q->f->bad = 1;
	return STOP;
}

/* window takes the next piece of the buffer: skips what needs no look, and parses the rest. */
static long window(u32 n, struct parse *q)
{
	struct feed *f = q->f;
	struct stream *s = f->request ? &q->c->req : &q->c->rep;
	if (f->bad || f->pos >= f->len)
		return STOP;
	u32 rest = f->len - f->pos;
	if (s->skip) {
		u32 some = s->skip < rest ? s->skip : rest;
		s->skip -= some;
		f->pos += some;
		f->seq += some;
		if (!s->skip && !s->left)
			message_done(q, s, f->request, f->seq);
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
	if (f->request)
		bpf_loop(LIMIT, request_token, q, 0);
	else
		bpf_loop(LIMIT, reply_token, q, 0);
	u32 left = f->total - f->i;
	if (f->bad)
		return STOP;
	if (left >= CARRY) { /* a token that is longer than any that we know */
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

#endif
