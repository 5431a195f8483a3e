/* Calls: a request waits in its connection's ring until its reply has passed. Matching is by order alone. While the
 * order is not known (attached in the middle of a connection, bytes not seen), nothing is matched. */
#ifndef SLOWPATH_CALLS_H
#define SLOWPATH_CALLS_H

enum { NO_BATCH = 1 << 16 };

/* feed describes the system call whose bytes are parsed. */
struct feed {
	u64 buf; /* in the memory of the thread */
	u64 now;
	u32 len, pos, total, i;
	u32 seq;   /* TCP sequence number of the byte at pos; of the window, while one is parsed */
	u32 bad;
	u32 slot;
	u32 batch; /* requests: the batch under way, NO_BATCH before the first */
	u32 request;
	u32 copied; /* requests of a client: TCP sequence number behind what it has read */
	u32 finished; /* TLS 1.3: the client's Finished is among the bytes */
};

/* lose_order drops the requests that wait: it is no longer known which reply belongs to which request. */
__noinline int lose_order(struct conn *c, u32 reason)
{
	if (!c)
		return 0;
	if (c->aligned) {
		count(reason, 1);
		count(C_LOST, c->outstanding);
	}
	c->aligned = 0;
	c->exchanges = 0;
	c->head = c->tail = 0;
	c->outstanding = c->blocking = 0;
	c->reply_off = c->alert = 0;
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
	if (c->sub == SETINFO && g->next_op >= max_ops / 2) { /* names of libraries leave room for commands */
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

/* arrival finds when the byte before seq came into the socket. */
static __always_inline struct mark *arrival(struct conn *c, u32 seq)
{
	u32 head = c->mark_head, tail = c->mark_tail;
	in_order(&c->mark_tail);
	for (int n = 0; n < MARKS; n++) {
		if (head == tail)
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

/* read_up_to drops the marks of bytes that have been read. */
static __always_inline void read_up_to(struct conn *c, u32 seq)
{
	u32 head = c->mark_head, tail = c->mark_tail;
	in_order(&c->mark_tail);
	for (int n = 0; n < MARKS; n++) {
		if (head == tail || (s32)(c->marks[head & (MARKS - 1)].seq - seq) > 0)
			break;
		head++;
	}
	c->mark_head = head;
}

/* first_command notes the first command of the read that a server's activity serves, and how many there are. */
static __always_inline void first_command(struct thread *t, struct conn *c, u32 args, u32 n)
{
	struct activity *activity = &t->activity;
	if (!activity->calls) {
		activity->name[0] = c->name[0];
		activity->name[1] = c->name[1];
		activity->sub = c->sub;
		activity->args = args;
	}
	activity->calls += n;
}

/* has_no_reply follows CLIENT REPLY, and reports whether a request gets no reply because of it. */
static __always_inline bool has_no_reply(struct conn *c)
{
	if (c->name[0] == CLIENT_COMMAND && c->sub == WORD('R', 'E', 'P', 'L', 'Y', 0, 0, 0)) {
		if (c->arg == WORD('O', 'F', 'F', 0, 0, 0, 0, 0))
			c->reply_off = REPLY_OFF;
		else if (c->arg == WORD('S', 'K', 'I', 'P', 0, 0, 0, 0) && c->reply_off != REPLY_OFF)
			c->reply_off = REPLY_SKIP;
		else if (c->arg == WORD('O', 'N', 0, 0, 0, 0, 0, 0))
			c->reply_off = 0;
		return c->reply_off;
	}
	if (!c->reply_off)
		return false;
	if (c->reply_off == REPLY_SKIP)
		c->reply_off = 0;
	return true;
}

/* memo_op keeps the number of the command in c->memo_op: most requests of a connection have the command of the one
 * before. */
static __always_inline void memo_op(struct conn *c)
{
	u64 name = c->name[0];
	if (c->memo[0] == name && c->memo[1] == c->name[1] && c->memo_sub == c->sub && c->memo_op)
		return;
	c->memo_op = c->aligned ? op_of(c) : 0; /* what is not aligned may be anything */
	c->may_block = may_block(name);
	c->administers = administers(name, c->sub);
	c->transacts = transacts(name);
	c->walks = walks(name);
	if (name == WORD('H', 'E', 'L', 'L', 'O', 0, 0, 0) ||
	    (name == CLIENT_COMMAND && c->sub == WORD('T', 'R', 'A', 'C', 'K', 'I', 'N', 'G')))
		c->strict = 1; /* there may be pushes after it */
	c->memo[0] = name;
	c->memo[1] = c->name[1];
	c->memo_sub = c->sub;
}

/* new_batch notes when a read began: m is the arrival of its last byte, if that is known. Where so many reads wait
 * for their replies that the oldest would be lost, as behind a command that blocks, this one counts with the last: it
 * came before it, as far as is known, and no call was read before it arrived. */
static __always_inline u32 new_batch(struct conn *c, struct feed *f, struct thread *t, struct mark *m, u64 start)
{
	struct pending *oldest = &c->ring[c->head & (RING - 1)];
	if (c->tail != c->head && (u16)(c->batch_no - oldest->batch) >= BATCHES)
		return (u16)(c->batch_no - 1);
	u32 batch = (u16)c->batch_no++;
	f->batch = batch;
	struct batch *b = &c->batches[batch & (BATCHES - 1)];
	b->arrived = start;
	b->read = f->now; /* client: sent */
	b->slot = f->slot;
	if (c->role == SERVER && t) {
		b->activity = t->number;
		b->clk_read = t->activity.clk_from;
		b->clk_arrived = m && c->slot == f->slot ? m->clk : b->clk_read;
	}
	return batch;
}

/* add_to_last adds n requests to the last entry of the ring, if they are equal to those in it or the ring is full. */
static __always_inline bool add_to_last(struct conn *c, u64 first, u32 batch, u32 seq, u32 n, u32 flags)
{
	u32 tail = c->tail;
	if (tail == c->head)
		return false;
	struct stream *s = &c->req;
	struct pending *last = &c->ring[(tail - 1) & (RING - 1)];
	bool same = last->op == c->memo_op && last->start == first && last->bytes == (u32)s->bytes &&
		    last->batch == batch && last->args == (u16)s->args && last->flags == flags;
	u32 waiting = last->count;
	/* count is 0: a thread that reads has just taken the last */
	if ((!same && tail - c->head < RING) || !waiting ||
	    __sync_val_compare_and_swap(&last->count, waiting, waiting + n) != waiting)
		return false;
	if (!same) {
		last->flags |= F_MERGED;
		count(C_MERGED, 1);
	}
	last->seq = seq;
	if (last->flags & F_BLOCKING)
		__sync_fetch_and_add(&c->blocking, n);
	return true;
}

/* flags_of are those of the request that has just ended. */
static __always_inline u32 flags_of(struct conn *c)
{
	u32 flags = c->aligned ? 0 : F_UNSURE;
	if (c->may_block && blocks_by_design(c->name[0], c->arg))
		flags |= F_BLOCKING;
	if (c->administers)
		flags |= F_ADMIN;
	if (c->transacts == EXECUTES)
		flags |= F_EXEC;
	if (c->walks)
		flags |= F_WALK;
	if (c->tls == NO_TLS)
		return flags;
	if (c->tls != TLS_OPEN)
		return F_OPENING;
	if (c->tickets) {
		c->tickets = 0;
		flags |= F_UNSURE;
	}
	return flags;
}

/* watches follows a request of a transaction that came, or was sent, then. */
static __always_inline void watches(struct conn *c, u64 then)
{
	if (c->transacts == WATCHES && !c->transactions.watched)
		c->transactions.watched = then;
	else if (c->transacts == ENDS_WATCH)
		c->transactions.watched = 0;
}

/* executed counts a transaction by the reply to its EXEC. Null is 3 bytes (RESP3) or 5, and no other reply is as long.
 */
static __always_inline void executed(struct conn *c, u64 now)
{
	struct transactions *t = &c->transactions;
	if (!t->watched)
		return;
	t->done++;
	if (c->rep.bytes == sizeof("_\r\n") - 1 || c->rep.bytes == sizeof("*-1\r\n") - 1) {
		t->failed++;
		t->failed_ns += now - t->watched;
	}
	t->watched = 0;
}

/* push_requests puts complete requests into the ring, n of equal bytes and arrival. seq is that of the byte after the
 * last. */
__noinline int push_requests(struct conn *c, struct feed *f, u32 seq, u32 n)
{
	if (!c || !f)
		return 0;
	c->ordinary = 0;
	struct stream *s = &c->req;
	struct thread *t = thread_of(f->slot);
	if (c->role == SERVER && t)
		first_command(t, c, s->args, n);
	if (has_no_reply(c))
		return 0;
	if (has_no_calls(c->name[0])) {
		c->ignore = 1;
		count(C_PUSH, 1);
		return 0;
	}
	if (c->name[0] == CLIENT_COMMAND && c->sub == SETNAME && c->announces)
		observes(c, OTHER);
	memo_op(c);
	struct mark *m = NULL;
	u64 start = c->send_start ? c->send_start : f->now;
	if (c->role == SERVER) {
		m = arrival(c, seq);
		start = m ? m->ns : f->now;
	}
	u64 first = c->req_first && c->req_first < start ? c->req_first : start;
	c->req_first = 0;
	u32 batch = f->batch;
	if (batch == NO_BATCH || c->batches[batch & (BATCHES - 1)].arrived != start)
		batch = new_batch(c, f, t, m, start);
	u32 flags = flags_of(c);
	if (c->transacts)
		watches(c, first);
	if (!(flags & F_BLOCKING) && c->outstanding == c->blocking)
		c->in_flight_since = first;
	c->ordinary = 1;
	__sync_fetch_and_add(&c->outstanding, n); /* another thread of a client may read meanwhile */
	if (add_to_last(c, first, batch, seq, n, flags))
		return 0;
	if (flags & F_BLOCKING)
		__sync_fetch_and_add(&c->blocking, n);
	u32 tail = c->tail;
	struct pending *p = &c->ring[tail & (RING - 1)];
	p->start = first;
	p->bytes = s->bytes;
	p->count = n;
	p->seq = seq;
	p->op = c->memo_op;
	p->batch = batch;
	p->args = s->args;
	p->flags = flags;
	p->unused = 0;
	in_order(&c->tail);
	c->tail = tail + 1;
	return 0;
}

/* may_report limits how many slow calls are reported: where all are slow, a part of them shows as much. The rest is
 * counted. */
static __always_inline bool may_report(u64 now)
{
	count(C_SLOW, 1);
	if (take_token(now, 0))
		return true;
	count(C_UNREPORTED, 1);
	return false;
}

/* sample: each tick makes room for sample_per_tick more fast calls, and sample_burst have room at once. */
static __always_inline bool sample(u64 now)
{
	u32 zero = 0;
	struct scratch *w;
	if (!sample_per_tick || !(w = bpf_map_lookup_elem(&scratches, &zero)))
		return false;
	u64 tick = now >> TICK_SHIFT, room = (tick - w->tick) * sample_per_tick;
	w->tick = tick;
	w->sampled = room < w->sampled ? w->sampled - room : 0;
	if (w->sampled >= sample_burst)
		return false;
	w->sampled++;
	return true;
}

/* reply_flags tells how a reply of a batch left its server; under TLS that is not known. A silence that ended just
 * before, with the reply to an earlier call, counts. */
static __always_inline u32 reply_flags(struct conn *c, struct batch *b, u64 now)
{
	if (c->tls)
		return 0;
	if (c->partial > b->read)
		return F_PIECES;
	return c->silent_from < b->read && c->silent_to > b->read && now - c->silent_to < slow_ns ? F_QUIET : 0;
}

/* end_of gives when a thread ended its activity for a batch, if it did between the read and now. */
static __always_inline struct activity_end *end_of(struct thread *t, struct batch *b, u64 now)
{
	u32 slot = t->ends - 1;
	struct ends *all = bpf_map_lookup_elem(&ends, &slot);
	if (!all)
		return NULL;
	struct activity_end *end = &all->at[b->activity & (ENDS - 1)];
	return end->number == b->activity && end->to >= b->read && end->to <= now ? end : NULL;
}

/* at_server fills in what only the server's end of a call knows. */
static __always_inline void at_server(struct call_event *e, struct conn *c, struct batch *b, u64 now)
{
	e->at[2] = b->read;
	e->clk[0] = b->clk_arrived;
	e->complete = b->arrived;
	e->flags |= reply_flags(c, b, now);
	e->clk[1] = e->clk[2] = b->clk_read;
	struct thread *reader = thread_of(b->slot);
	if (!reader)
		return;
	e->tid = reader->tid;
	e->tgid = reader->tgid;
	struct activity_end *end = end_of(reader, b, now);
	if (end) {
		e->at[2] = end->to;
		e->clk[2] = end->clk;
	}
}

/* locked_only: another thread read the reply before, so that the clocks of this one were not read when the reply came.
 * Where one thread runs at a time it is known how long this one slept for their lock; elsewhere it may have had nothing
 * to do. */
static __always_inline void locked_only(struct call_event *e)
{
	u64 most = e->at[3] - e->at[2];
	u32 tgid = e->tgid;
	e->clk[2] = e->clk[3];
	enum calling *calls = bpf_map_lookup_elem(&threads_call, &tgid);
	if (calls && *calls == ONE_AT_A_TIME)
		e->clk[2].ns[ASLEEP] -= e->locked_ns < most ? e->locked_ns : most;
}

/* at_client fills in what only the client's end of a call knows, and what the server's end published. */
static __always_inline void at_client(struct call_event *e, struct conn *c, struct feed *f, struct pending *p, u32 seq)
{
	struct mark *m = arrival(c, seq);
	e->at[2] = m ? m->ns : f->now;
	if (m && c->slot == f->slot)
		e->clk[2] = m->clk;
	else
		locked_only(e);
	struct pair *pair = pair_of(c);
	if (pair && !pair->ambiguous && (s32)(p->seq - pair->seq_from) > 0 && (s32)(pair->seq_to - p->seq) >= 0) {
		in_order(&pair->settled);
		e->pair = *pair;
		in_order(&pair->settled);
		if (e->pair.seq_from == pair->seq_from && e->pair.seq_to == pair->seq_to) /* it was not written meanwhile */
			e->flags |= F_PAIRED;
	}
}

/* report_call reports the call whose request is at a place of the ring. seq is that of the byte after its reply. */
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
		e->locked_ns = t->caller.futex_ns;
	}
	struct batch *b = &c->batches[p->batch & (BATCHES - 1)];
	e->at[1] = b->read;
	if (c->role == SERVER)
		at_server(e, c, b, f->now);
	else
		at_client(e, c, f, p, seq);
	bpf_get_current_comm(e->comm, 16);
	submit(e);
	return 0;
}

/* publish gives the client's end of a connection on this host what the server did for the calls that it has just
 * answered. first is the place in the ring of the first of them. */
__noinline int publish(struct conn *c, struct feed *f, u32 first, u32 replied_seq)
{
	if (!c || !f)
		return 0;
	struct pair *pair = pair_of(c);
	struct thread *t = thread_of(f->slot);
	if (!pair || !pair->client || !t)
		return 0;
	struct pending *p = &c->ring[first & (RING - 1)];
	struct batch *b = &c->batches[p->batch & (BATCHES - 1)];
	pair->settled = NOT_SETTLED;
	in_order(&pair->settled);
	bool read = pair->has_read && (s32)(pair->read_seq - pair->replied_seq) >= 0;
	if (pair->calls != pair->read_calls && !read && !pair->unread_arrived && !(pair->flags & F_NO_TIME)) {
		pair->unread_arrived = pair->arrived;
		pair->unread_send = pair->send;
		pair->unread_calls = pair->calls;
	}
	pair->seq_from = p->seq - p->bytes;
	pair->seq_to = c->requested_seq;
	pair->arrived = p->start;
	pair->complete = b->arrived;
	pair->read = pair->done = b->read;
	pair->send = f->now;
	pair->split = f->now - p->start >= min_activity_ns;
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
	pair->no_calls = c->no_calls;
	pair->tls = c->tls;
	pair->print = c->print;
	pair->flags = reply_flags(c, b, f->now) | (p->flags & (F_NO_TIME | F_WALK));
	read_clocks(pair->slot, f->now, &pair->clk_client);
	struct activity_end *end = end_of(t, b, f->now);
	if (end) {
		pair->done = end->to;
		if (pair->split)
			pair->clk_done = end->clk;
	}
	pair->requested_seq = c->requested_seq;
	pair->replied_seq = replied_seq;
	in_order(&pair->settled);
	if (!c->outstanding && !c->rep.started)
		pair->settled = c->aligned ? ALL_ANSWERED_ALIGNED : ALL_ANSWERED;
	return 0;
}

/* report_light reports a call by the client's end of a connection whose server's end parsed it: the last one, or with
 * F_UNREAD the first whose reply was not read. */
__noinline int report_light(struct conn *c, u32 slot, u64 now, u32 flags)
{
	if (!c)
		return 0;
	struct pair *pair = pair_of(c);
	struct thread *t = thread_of(slot);
	if (!pair || !t)
		return 0;
	struct call_event *e = reserve(struct call_event);
	if (!e)
		return 0;
	__builtin_memset(e, 0, sizeof(*e));
	e->type = EV_CALL;
	e->role = CLIENT;
	e->flags = F_PAIRED | (flags & ~F_UNREAD) | (pair->tls ? F_TLS : 0);
	e->op = pair->op;
	e->args = pair->args;
	e->req_bytes = pair->req_bytes;
	e->rep_bytes = pair->rep_bytes;
	e->seq = pair->requested_seq;
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
	e->locked_ns = t->caller.futex_ns;
	if (pair->slot == slot)
		e->clk[2] = pair->clk_client;
	else
		locked_only(e);
	e->pair = *pair;
	if (flags & F_UNREAD) { /* of it only these times were kept */
		e->pair.arrived = e->pair.complete = e->pair.read = e->at[0] = e->at[1] = pair->unread_arrived;
		e->pair.done = e->pair.send = e->at[2] = pair->unread_send;
		e->pair.split = 0;
		e->number = pair->unread_calls;
		e->clk[2] = e->clk[3];
	}
	bpf_get_current_comm(e->comm, 16);
	submit(e);
	return 0;
}

/* count_error counts an error reply by its command and its first word. */
__noinline int count_error(struct conn *c, u32 op)
{
	if (!c)
		return 0;
	struct error_key k = {.name = {c->error_name[0], c->error_name[1]}, .op = op, .role = c->role};
	u64 one = 1, *have = bpf_map_lookup_elem(&errors, &k);
	if (!have && !bpf_map_update_elem(&errors, &k, &one, BPF_NOEXIST))
		return 0;
	if (!have)
		have = bpf_map_lookup_elem(&errors, &k);
	if (have)
		__sync_fetch_and_add(have, 1);
	else
		count(C_ERRORS_FULL, 1);
	return 0;
}

/* answered keeps the sums of a connection: n requests of the ring's entry p have their replies. */
static __always_inline u64 answered(struct conn *c, struct pending *p, u64 now, u32 n)
{
	u64 ns = now > p->start ? now - p->start : 0;
	__sync_fetch_and_add(&c->outstanding, -n);
	c->calls += n;
	if (p->flags & F_NO_CALL)
		c->no_calls += n;
	if (p->flags & F_BLOCKING) {
		__sync_fetch_and_add(&c->blocking, -n);
		c->last_ns = 0;
		return ns;
	}
	if (c->outstanding == c->blocking && now > c->in_flight_since)
		c->in_flight_ns += now - c->in_flight_since;
	c->last_ns = ns;
	if (c->role == CLIENT)
		in_chain(c, p->op, p->start, now, longest_pause(p->flags));
	return ns;
}

/* is_new: the first calls of a new connection are its handshake. */
static __always_inline bool is_new(struct conn *c)
{
	return c->opened && c->calls <= HANDSHAKE_CALLS;
}

/* read_reply: a client's thread has read the reply to a call. The sleep before that was for Redis, as far as the call
 * was under way. */
__noinline int read_reply(struct conn *c, u64 now)
{
	if (!c || c->role != CLIENT || !c->replied_from)
		return 0;
	struct thread *t = thread_of(c->slot);
	if (!t)
		return 0;
	struct caller *k = &t->caller;
	if (k->has_read)
		done_reading(t);
	u64 from = c->replied_from;
	u32 op = c->replied_op;
	u32 why = k->why;
	if (k->slept_to > from && (why == FOR_EVENTS || why == FOR_OTHERS)) {
		u64 since = k->slept_from > from ? k->slept_from : from;
		k->waits.ns[why & REASON_MASK] -= k->slept_to - since;
		k->waits.ns[FOR_REDIS] += k->slept_to - since;
		k->slept_to = 0;
	}
	c->replied_from = 0;
	k->last.locked_ns = k->futex_ns;
	k->futex_ns = 0;
	k->lock_since = k->lock_ns = k->wakers = 0;
	if (k->wanted >= from)
		k->wanted = 0;
	if (!k->loop) {
		called(k, c->print, op);
		k->has_read = 1;
		k->read_ran = ran_by(t, now);
	}
	k->last.from = from;
	k->last.to = now;
	k->last.op = op;
	k->last.print = c->print;
	if (k->last.conn != c->cookie || k->last.addr.observer != c->observer) {
		k->last.conn = c->cookie;
		fill_addr(&k->last.addr, c);
	}
	return 0;
}

/* pop_usual counts the reply to a request that does not wait by design, and reports it if it is slow, or changes the
 * server. */
static __always_inline void pop_usual(struct conn *c, struct feed *f, struct pending *p, u64 ns, u32 seq)
{
	count(c->role == SERVER ? C_CALLS_SERVER : C_CALLS_CLIENT, 1);
	add_latency(p->op, c->role, ns, 1);
	c->replied_from = p->start;
	c->replied_op = p->op;
	if (ns >= slow_ns) {
		if (may_report(f->now))
			report_call(c, f, c->head, 0, seq);
	} else if (sample(f->now)) {
		count(C_SAMPLED, 1);
		report_call(c, f, c->head, F_SAMPLED, seq);
	} else if (is_new(c) || (p->flags & F_ADMIN && take_token(f->now, slow_burst / 2))) {
		report_call(c, f, c->head, F_FRESH, seq);
	}
}

/* pop_other reports a flight of a TLS handshake, or a command that waited by design: others may have waited behind it.
 * Half of the tokens are left to slow calls. */
static __always_inline void pop_other(struct conn *c, struct feed *f, struct pending *p, u64 ns, u32 seq)
{
	bool blocking = p->flags & F_BLOCKING;
	if (blocking)
		count(C_BLOCKING, 1);
	if (blocking && c->role == SERVER && ns >= slow_ns && take_token(f->now, slow_burst / 2))
		report_call(c, f, c->head, 0, seq);
	else if (is_new(c) || (sample_per_tick && sample(f->now)))
		report_call(c, f, c->head, F_FRESH, seq);
}

/* pop_reply matches a complete reply. seq is that of the byte after it. */
__noinline int pop_reply(struct conn *c, struct feed *f, u32 seq)
{
	if (!c || !f)
		return 0;
	if (c->head == c->tail || !c->outstanding) {
		lose_order(c, C_EXCESS); /* a reply without a request: the order was wrong */
		f->bad = 1;
		return 0;
	}
	in_order(&c->tail);
	struct pending *p = &c->ring[c->head & (RING - 1)];
	u64 ns = answered(c, p, f->now, 1);
	bool sure = c->aligned && !(p->flags & F_UNSURE);
	if (sure && c->rep.error && !c->observer)
		count_error(c, p->op);
	if (sure && p->flags & F_EXEC)
		executed(c, f->now);
	if (c->observer) {
		count(c->observer == OWN ? C_CALLS_OWN : C_CALLS_OBSERVER, 1);
		if (c->observer == OWN && c->aligned && ns >= slow_ns)
			report_call(c, f, c->head, 0, seq);
	} else if (!sure) {
		count(C_UNALIGNED, 1);
		if (c->tls && is_new(c))
			report_call(c, f, c->head, F_FRESH, seq); /* the handshake is over by now */
	} else if (p->flags & F_NO_CALL) {
		pop_other(c, f, p, ns, seq);
	} else {
		pop_usual(c, f, p, ns, seq);
	}
	if (__sync_fetch_and_add(&p->count, -1) == 1)
		c->head++;
	return 0;
}

/* pop_replies matches up to n complete replies to the requests at the head of the ring, if none of them is worth a
 * report. It gives how many. */
__noinline int pop_replies(struct conn *c, struct feed *f, u32 n)
{
	if (!c || !f || c->head == c->tail || !c->aligned || c->observer || sample_per_tick ||
	    (c->opened && c->calls < HANDSHAKE_CALLS))
		return 0;
	in_order(&c->tail);
	struct pending *p = &c->ring[c->head & (RING - 1)];
	u64 ns = f->now > p->start ? f->now - p->start : 0;
	if (ns >= slow_ns || p->flags & (F_NO_TIME | F_ADMIN | F_EXEC))
		return 0;
	if (n > p->count)
		n = p->count;
	if (n > c->outstanding)
		n = c->outstanding;
	answered(c, p, f->now, n);
	c->replied_from = p->start;
	c->replied_op = p->op;
	count(c->role == SERVER ? C_CALLS_SERVER : C_CALLS_CLIENT, n);
	add_latency(p->op, c->role, ns, n);
	if (__sync_fetch_and_add(&p->count, -n) == n)
		c->head++;
	return n;
}

#endif
