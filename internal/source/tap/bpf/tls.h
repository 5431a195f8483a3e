/* TLS hides requests and replies: of a connection only request/response turns are seen, from the first record with
 * requests to the first with replies. Records of other types are none: alerts, such as the close_notify before the end
 * of an idle connection, session tickets, and those of the handshake, whose flights are turns of their own. What was
 * requested in a turn is known from its plaintext. */
#ifndef SLOWPATH_TLS_H
#define SLOWPATH_TLS_H

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
	if (administers(c->name[0], c->sub))
		p->flags |= F_ADMIN;
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

#endif
