/* Calls: a request waits in its connection's ring until its reply has passed. Matching is by order alone; where the order is not known
 * (attached in the middle, bytes not seen), nothing is matched until it is known again. */
#ifndef SLOWPATH_CALLS_H
#define SLOWPATH_CALLS_H

#define WORD(a, b, c, d, e, f, g, h)                                                                                                   \
	((u64)(a) | (u64)(b) << 8 | (u64)(c) << 16 | (u64)(d) << 24 | (u64)(e) << 32 | (u64)(f) << 40 | (u64)(g) << 48 | (u64)(h) << 56)

#define SETINFO WORD('S', 'E', 'T', 'I', 'N', 'F', 'O', 0)

/* feed is what is known of the system call whose bytes are parsed. */
struct feed {
	u64 buf; /* in the memory of the thread */
	u64 now;
	u32 len, pos, total, i;
	u32 seq;   /* TCP sequence number of the byte at pos; of the window, while one is parsed */
	u32 bad;
	u32 slot;
	u32 batch; /* requests: the batch under way, BATCHES before the first */
	u32 request;
	u32 copied; /* requests of a client: TCP sequence number behind what it has read */
};

/* lose forgets what waits: the order is not known any more. */
__noinline int lose(struct conn *c, u32 why)
{
	if (!c)
		return 0;
	if (c->aligned)
		count(why, 1);
	c->aligned = 0;
	c->exchanges = 0;
	c->head = c->tail = 0;
	c->outstanding = 0;
	c->reply_off = 0;
	__builtin_memset(&c->req, 0, sizeof(c->req));
	__builtin_memset(&c->rep, 0, sizeof(c->rep));
	return 0;
}

__noinline int op_of(struct conn *c)
{
	u32 zero = 0;
	struct scratch *w = bpf_map_lookup_elem(&scratches, &zero);
	if (!c || !w)
		return 0;
	struct op_key *k = &w->key; /* there is little stack left */
	k->name[0] = c->name[0];
	k->name[1] = c->name[1];
	k->sub = c->sub;
	k->node = c->node;
	u32 *have = bpf_map_lookup_elem(&ops, k);
	if (have)
		return *have;
	struct shared *g = shared();
	if (!g)
		return 0;
	if (c->sub == SETINFO && g->next_op >= max_ops / 2) { /* libraries leave room for commands */
		k->name[1] = 0;
		have = bpf_map_lookup_elem(&ops, k);
		if (have)
			return *have;
	}
	u32 op = __sync_fetch_and_add(&g->next_op, 1) + 1;
	if (op >= max_ops) {
		__sync_fetch_and_add(&g->next_op, -1);
		count(C_OPS_FULL, 1);
		return 0;
	}
	w->op = op;
	if (bpf_map_update_elem(&ops, k, &w->op, BPF_NOEXIST)) {
		have = bpf_map_lookup_elem(&ops, k);
		return have ? *have : 0;
	}
	return op;
}

/* log2u is the position of the highest bit. */
static __always_inline u32 log2u(u64 v)
{
	u32 r = 0;
	if (v >> 32) { v >>= 32; r += 32; }
	if (v >> 16) { v >>= 16; r += 16; }
	if (v >> 8) { v >>= 8; r += 8; }
	if (v >> 4) { v >>= 4; r += 4; }
	if (v >> 2) { v >>= 2; r += 2; }
	return r + (v >> 1);
}

__noinline int add_latency(u32 op, u32 role, u64 ns, u32 n)
{
	u32 key = op * 2 + (role == CLIENT);
	struct hist *h = bpf_map_lookup_elem(&hists, &key);
	if (!h)
		return 0;
	u32 i = ns;
	if (ns >= 1 << HIST_BITS) {
		u32 e = log2u(ns);
		i = ((e - HIST_BITS + 1) << HIST_BITS) + ((ns >> (e - HIST_BITS)) & ((1 << HIST_BITS) - 1));
	}
	if (i >= HIST)
		i = HIST - 1;
	h->n[i] += n;
	return 0;
}

/* arrival finds when the byte before seq came into the socket. */
static __always_inline struct mark *arrival(struct conn *c, u32 seq)
{
	u32 head = c->mark_head;
	for (int n = 0; n < MARKS; n++) {
		if (head == c->mark_tail)
			return NULL;
		struct mark *m = &c->marks[head & (MARKS - 1)];
		if ((s32)(m->seq - seq) >= 0) {
			c->mark_head = head;
			return m;
		}
		head++;
	}
	return NULL;
}

/* read_up_to drops the marks of what has been read. */
static __always_inline void read_up_to(struct conn *c, u32 seq)
{
	u32 head = c->mark_head;
	for (int n = 0; n < MARKS; n++) {
		if (head == c->mark_tail || (s32)(c->marks[head & (MARKS - 1)].seq - seq) > 0)
			break;
		head++;
	}
	c->mark_head = head;
}

/* is_waiter knows the commands whose reply may come much later than those of others on the same connection. */
static __always_inline bool is_waiter(u64 name)
{
	u8 first = name;
	return first == 'B' || name == WORD('X', 'R', 'E', 'A', 'D', 0, 0, 0) || name == WORD('X', 'R', 'E', 'A', 'D', 'G', 'R', 'O') ||
	       name == WORD('W', 'A', 'I', 'T', 0, 0, 0, 0) || name == WORD('W', 'A', 'I', 'T', 'A', 'O', 'F', 0);
}

/* has_no_calls knows the commands after which a connection carries what nobody asked for. */
static __always_inline bool has_no_calls(u64 name)
{
	switch (name) {
	case WORD('S', 'U', 'B', 'S', 'C', 'R', 'I', 'B'):
	case WORD('P', 'S', 'U', 'B', 'S', 'C', 'R', 'I'):
	case WORD('S', 'S', 'U', 'B', 'S', 'C', 'R', 'I'):
	case WORD('M', 'O', 'N', 'I', 'T', 'O', 'R', 0):
	case WORD('S', 'Y', 'N', 'C', 0, 0, 0, 0):
	case WORD('P', 'S', 'Y', 'N', 'C', 0, 0, 0):
	case WORD('R', 'E', 'P', 'L', 'C', 'O', 'N', 'F'):
		return true;
	}
	return false;
}

/* push_requests puts complete requests into the ring, n of equal bytes and arrival. seq is that of the byte after the last. */
__noinline int push_requests(struct conn *c, struct feed *f, u32 seq, u32 n)
{
	if (!c || !f)
		return 0;
	c->plain = 0;
	struct stream *s = &c->req;
	struct thread *t = thread_of(f->slot);
	const u64 client = WORD('C', 'L', 'I', 'E', 'N', 'T', 0, 0);
	u64 name = c->name[0];

	if (c->role == SERVER && t) {
		struct item *it = &t->item;
		if (!it->calls) {
			it->name[0] = name;
			it->name[1] = c->name[1];
			it->sub = c->sub;
			it->args = s->args;
		}
		it->calls += n;
	}
	if (name == client && c->sub == WORD('R', 'E', 'P', 'L', 'Y', 0, 0, 0)) {
		if (c->arg == WORD('O', 'F', 'F', 0, 0, 0, 0, 0))
			c->reply_off = REPLY_OFF;
		else if (c->arg == WORD('S', 'K', 'I', 'P', 0, 0, 0, 0) && c->reply_off != REPLY_OFF)
			c->reply_off = REPLY_SKIP;
		else if (c->arg == WORD('O', 'N', 0, 0, 0, 0, 0, 0))
			c->reply_off = 0;
		if (c->reply_off)
			return 0;
	}
	if (c->reply_off) {
		if (c->reply_off == REPLY_SKIP)
			c->reply_off = 0;
		return 0;
	}
	if (has_no_calls(name)) {
		c->ignore = 1;
		count(C_PUSH, 1);
		return 0;
	}
	if (c->memo[0] != name || c->memo[1] != c->name[1] || c->memo_sub != c->sub || !c->memo_op) {
		c->memo_op = c->aligned ? op_of(c) : 0; /* what is not aligned may be anything */
		c->waiter = is_waiter(name);
		if (name == WORD('H', 'E', 'L', 'L', 'O', 0, 0, 0) || (name == client && c->sub == WORD('T', 'R', 'A', 'C', 'K', 'I', 'N', 'G')))
			c->strict = 1; /* there may be pushes from now on */
		c->memo[0] = name;
		c->memo[1] = c->name[1];
		c->memo_sub = c->sub;
	}
	struct mark *m = NULL;
	u64 start = c->send_start ? c->send_start : f->now;
	if (c->role == SERVER) {
		m = arrival(c, seq);
		start = m ? m->ns : f->now;
	}
	u64 first = c->req_first && c->req_first < start ? c->req_first : start;
	c->req_first = 0;
	u32 batch = f->batch;
	if (batch >= BATCHES || c->batches[batch & (BATCHES - 1)].arrived != start) {
		batch = c->batch_no++ & (BATCHES - 1);
		f->batch = batch;
		struct batch *b = &c->batches[batch & (BATCHES - 1)];
		b->arrived = start;
		b->read = f->now; /* client: sent */
		b->slot = f->slot;
		if (c->role == SERVER && t) {
			b->item = t->number;
			b->clk_read = t->item.clk_from;
			b->clk_arrived = m && c->slot == f->slot ? m->clk : b->clk_read;
		}
	}
	if (!c->outstanding)
		c->in_flight_since = first;
	c->plain = 1;
	__sync_fetch_and_add(&c->outstanding, n); /* another thread of a client may read meanwhile */
	u32 tail = c->tail;
	if (tail != c->head) {
		struct pending *last = &c->ring[(tail - 1) & (RING - 1)];
		bool same = last->op == c->memo_op && last->start == first && last->bytes == (u32)s->bytes && last->batch == batch &&
			    last->args == (u16)s->args;
		u32 had = last->count;
		/* none left: a thread that reads has just taken the last */
		if ((same || tail - c->head >= RING) && had && __sync_val_compare_and_swap(&last->count, had, had + n) == had) {
			if (!same) {
				last->flags |= F_MERGED;
				count(C_MERGED, 1);
			}
			last->seq = seq;
			return 0;
		}
	}
	struct pending *p = &c->ring[tail & (RING - 1)];
	p->start = first;
	p->bytes = s->bytes;
	p->count = n;
	p->seq = seq;
	p->op = c->memo_op;
	p->batch = batch;
	p->args = s->args;
	p->flags = 0;
	p->unused = 0;
	barrier();
	c->tail = tail + 1;
	return 0;
}

/* take_token bounds how much is reported, and leaves so many tokens to others. */
static __always_inline bool take_token(u64 now, u32 leave)
{
	u32 zero = 0;
	struct scratch *w = bpf_map_lookup_elem(&scratches, &zero);
	if (!w)
		return false;
	u64 tick = now >> 20, gone = tick - w->filled;
	if (gone) {
		u64 tokens = gone > slow_burst ? slow_burst : w->tokens + gone * slow_per_tick;
		w->tokens = tokens > slow_burst ? slow_burst : tokens;
		w->filled = tick;
	}
	if (w->tokens <= leave)
		return false;
	w->tokens--;
	return true;
}

/* may_report bounds how many slow calls are reported: where all are slow, a part of them tells as much. The rest is counted. */
static __always_inline bool may_report(u64 now)
{
	count(C_SLOW, 1);
	if (take_token(now, 0))
		return true;
	count(C_UNREPORTED, 1);
	return false;
}

static __always_inline bool sample(u64 now)
{
	u32 zero = 0;
	struct scratch *w;
	if (!sample_per_tick || !(w = bpf_map_lookup_elem(&scratches, &zero)))
		return false;
	if (w->tick != now >> 20) {
		w->tick = now >> 20;
		w->sampled = 0;
	}
	return w->sampled++ < sample_per_tick;
}

/* way_out says how a reply of a batch left its server; what TLS hides is not known. A silence that ended a moment ago, with the reply to a call
 * before this one, counts. */
static __always_inline u32 way_out(struct conn *c, struct batch *b, u64 now)
{
	if (c->tls)
		return 0;
	if (c->partial > b->read)
		return F_PIECES;
	return c->silent_from < b->read && c->silent_to > b->read && now - c->silent_to < slow_ns ? F_QUIET : 0;
}

__noinline int report_call(struct conn *c, struct feed *f, u32 at, u32 flags, u32 seq)
{
	if (!c || !f)
		return 0;
	struct pending *p = &c->ring[at & (RING - 1)];
	struct thread *t = thread_of(f->slot);
	struct call_event *e = reserve(struct call_event);
	if (!e)
		return 0;
	__builtin_memset(e, 0, sizeof(*e));
	e->type = EV_CALL;
	e->role = c->role;
	e->flags = flags | p->flags;
	if (c->tls)
		e->flags |= F_TLS;
	if (c->rep.error)
		e->flags |= F_ERROR;
	e->op = p->op;
	e->args = p->args;
	fill_addr(&e->addr, c);
	e->conn = c->cookie;
	e->number = c->calls;
	e->rep_bytes = c->rep.bytes;
	e->req_bytes = p->bytes;
	e->seq = p->seq;
	e->ahead = c->outstanding + 1;
	e->at[0] = p->start;
	e->at[3] = f->now;
	if (t) {
		e->tid = t->tid;
		e->tgid = t->tgid;
		e->clk[3] = t->clk;
	}
	struct batch *b = &c->batches[p->batch & (BATCHES - 1)];
	e->at[1] = b->read;
	if (c->role == SERVER) {
		e->at[2] = b->read;
		e->clk[0] = b->clk_arrived;
		e->complete = b->arrived;
		e->flags |= way_out(c, b, f->now);
		e->clk[1] = e->clk[2] = b->clk_read;
		struct thread *reader = thread_of(b->slot);
		if (reader) {
			e->tid = reader->tid;
			e->tgid = reader->tgid;
			u32 slot = reader->turns;
			struct turns *all = bpf_map_lookup_elem(&turns, &slot);
			if (all) {
				struct turn *turn = &all->at[b->item & (TURNS - 1)];
				if (turn->number == b->item && turn->to >= b->read && turn->to <= f->now) {
					e->at[2] = turn->to;
					e->clk[2] = turn->clk;
				}
			}
		}
	} else {
		struct mark *m = arrival(c, seq);
		e->at[2] = m ? m->ns : f->now;
		if (m && c->slot == f->slot)
			e->clk[2] = m->clk;
		else
			e->clk[2] = e->clk[3];
		u32 slot = c->pair;
		struct pair *pair = bpf_map_lookup_elem(&pairs, &slot);
		if (pair && (s32)(p->seq - pair->seq_from) > 0 && (s32)(pair->seq_to - p->seq) >= 0) {
			e->pair = *pair;
			e->flags |= F_PAIRED;
		}
	}
	bpf_get_current_comm(e->comm, 16);
	submit(e);
	return 0;
}

/* publish tells the client's end of a connection on this host what the server did for what it has just answered. first is the place in the
 * ring of the first call that this send answered. */
__noinline int publish(struct conn *c, struct feed *f, u32 first, u32 replied)
{
	if (!c || !f)
		return 0;
	u32 key = c->pair;
	struct pair *pair = bpf_map_lookup_elem(&pairs, &key);
	struct thread *t = thread_of(f->slot);
	if (!pair || !pair->client || !t)
		return 0;
	struct pending *p = &c->ring[first & (RING - 1)];
	struct batch *b = &c->batches[p->batch & (BATCHES - 1)];
	pair->settled = 0;
	pair->seq_from = p->seq - p->bytes;
	pair->seq_to = c->asked;
	pair->arrived = p->start;
	pair->complete = b->arrived;
	pair->read = pair->done = b->read;
	pair->send = f->now;
	pair->split = f->now - p->start >= min_item_ns;
	if (pair->split) {
		pair->clk_arrived = b->clk_arrived;
		pair->clk_read = pair->clk_done = b->clk_read;
		pair->clk_send = t->clk;
	}
	pair->tid = t->tid;
	pair->tgid = t->tgid;
	pair->op = p->op;
	pair->args = p->args;
	pair->req_bytes = p->bytes;
	pair->rep_bytes = c->rep.bytes;
	pair->calls = c->calls;
	pair->tls = c->tls;
	pair->flags = way_out(c, b, f->now);
	snapshot(pair->slot, f->now, &pair->clk_client);
	u32 turn_slot = t->turns;
	struct turns *all = bpf_map_lookup_elem(&turns, &turn_slot);
	if (all) {
		struct turn *turn = &all->at[b->item & (TURNS - 1)];
		if (turn->number == b->item && turn->to >= b->read && turn->to <= f->now) {
			pair->done = turn->to;
			if (pair->split)
				pair->clk_done = turn->clk;
		}
	}
	pair->asked = c->asked;
	pair->replied = replied;
	barrier();
	if (!c->outstanding && !c->rep.started)
		pair->settled = c->aligned ? 2 : 1;
	return 0;
}

/* report_light reports a call by the client's end of a connection whose server's end parsed it. */
__noinline int report_light(struct conn *c, u32 slot, u64 now, u32 flags)
{
	if (!c)
		return 0;
	u32 key = c->pair;
	struct pair *pair = bpf_map_lookup_elem(&pairs, &key);
	struct thread *t = thread_of(slot);
	if (!pair || !t)
		return 0;
	struct call_event *e = reserve(struct call_event);
	if (!e)
		return 0;
	__builtin_memset(e, 0, sizeof(*e));
	e->type = EV_CALL;
	e->role = CLIENT;
	e->flags = F_PAIRED | flags | (pair->tls ? F_TLS : 0);
	e->op = pair->op;
	e->args = pair->args;
	e->req_bytes = pair->req_bytes;
	e->rep_bytes = pair->rep_bytes;
	e->seq = pair->asked;
	fill_addr(&e->addr, c);
	e->conn = c->cookie;
	e->number = pair->calls;
	e->ahead = 1;
	e->tid = t->tid;
	e->tgid = t->tgid;
	e->at[0] = e->at[1] = pair->arrived;
	e->at[2] = pair->send < now ? pair->send : now;
	e->at[3] = now;
	e->clk[3] = t->clk;
	e->clk[2] = pair->slot == slot ? pair->clk_client : t->clk;
	e->pair = *pair;
	bpf_get_current_comm(e->comm, 16);
	submit(e);
	return 0;
}

/* pop_reply matches a complete reply. seq is that of the byte after it. */
__noinline int pop_reply(struct conn *c, struct feed *f, u32 seq)
{
	if (!c || !f)
		return 0;
	if (c->head == c->tail || !c->outstanding) {
		lose(c, C_EXCESS); /* a reply that nobody asked for: we were wrong about the order */
		f->bad = 1;
		return 0;
	}
	struct pending *p = &c->ring[c->head & (RING - 1)];
	__sync_fetch_and_add(&c->outstanding, -1);
	c->calls++;
	if (!c->outstanding && f->now > c->in_flight_since)
		c->in_flight_ns += f->now - c->in_flight_since;
	u64 ns = f->now > p->start ? f->now - p->start : 0;
	c->last_ns = ns;
	if (c->aligned) {
		count(c->role == SERVER ? C_CALLS_SERVER : C_CALLS_CLIENT, 1);
		add_latency(p->op, c->role, ns, 1);
		if (ns >= slow_ns) {
			if (may_report(f->now) || of_slowpath(c))
				report_call(c, f, c->head, 0, seq);
		} else if (sample(f->now)) {
			count(C_SAMPLED, 1);
			report_call(c, f, c->head, F_SAMPLED, seq);
		} else if (c->opened && c->calls <= GREETING) {
			report_call(c, f, c->head, F_FRESH, seq);
		}
	} else {
		count(C_UNALIGNED, 1);
	}
	if (__sync_fetch_and_add(&p->count, -1) == 1)
		c->head++;
	return 0;
}

/* pop_replies matches up to n complete replies to the requests at the head of the ring, if none of them is worth a report. It gives how many. */
__noinline int pop_replies(struct conn *c, struct feed *f, u32 n)
{
	if (!c || !f || c->head == c->tail || !c->aligned || sample_per_tick || (c->opened && c->calls < GREETING))
		return 0;
	struct pending *p = &c->ring[c->head & (RING - 1)];
	u64 ns = f->now > p->start ? f->now - p->start : 0;
	if (ns >= slow_ns)
		return 0;
	if (n > p->count)
		n = p->count;
	if (n > c->outstanding)
		n = c->outstanding;
	__sync_fetch_and_add(&c->outstanding, -n);
	c->calls += n;
	if (!c->outstanding && f->now > c->in_flight_since)
		c->in_flight_ns += f->now - c->in_flight_since;
	c->last_ns = ns;
	count(c->role == SERVER ? C_CALLS_SERVER : C_CALLS_CLIENT, n);
	add_latency(p->op, c->role, ns, n);
	if (__sync_fetch_and_add(&p->count, -n) == n)
		c->head++;
	return n;
}

#endif
