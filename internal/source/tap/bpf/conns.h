/* Connections: which sockets are watched, which processes have their ends, and what happened to them. The state of a
 * connection is stored with its socket, and so ends with it. */
#ifndef SLOWPATH_CONNS_H
#define SLOWPATH_CONNS_H

/* role_of is which end of a connection a socket is; 0: it is not watched. */
static __always_inline u32 role_of(const struct sock *sk)
{
	u16 family = sk->__sk_common.skc_family;
	if (family != AF_INET && family != AF_INET6)
		return 0;
	if (watched_port(sk->__sk_common.skc_num))
		return SERVER;
	if (watched_port(swap16(sk->__sk_common.skc_dport)))
		return CLIENT;
	return 0;
}

static __always_inline struct conn *conn_of(const struct sock *sk)
{
	return bpf_sk_storage_get(&conns, (void *)sk, 0, 0);
}

/* skip_light: the socket is the client's end of a connection whose server's end parses for both. */
static __always_inline bool skip_light(const struct sock *sk)
{
	return !strict_all && both_here(sk) && !watched_port(sk->__sk_common.skc_num);
}

static __always_inline void key_of(struct conn *c, struct pair_key *k)
{
	bool server = c->role == SERVER;
	__builtin_memcpy(k->client, server ? c->at.raddr : c->at.laddr, 16);
	__builtin_memcpy(k->server, server ? c->at.laddr : c->at.raddr, 16);
	k->cport = server ? c->at.rport : c->at.lport;
	k->sport = server ? c->at.lport : c->at.rport;
	k->net = same_host(&c->at) ? c->net : 0;
}

static __always_inline struct pair *pair_of(struct conn *c)
{
	u32 slot = c->pair;
	return bpf_map_lookup_elem(&pairs, &slot);
}

const struct pair no_pair;

/* new_pair takes a slot that no connection has. */
static __noinline u32 new_pair(void)
{
	u32 slot = 0;
	struct shared *g = shared();
	if (!g)
		return NO_SLOT;
	if (bpf_map_pop_elem(&free_pairs, &slot)) {
		slot = __sync_fetch_and_add(&g->next_pair, 1);
		if (slot >= max_pairs) {
			__sync_fetch_and_add(&g->next_pair, -1);
			return NO_SLOT;
		}
	}
	bpf_map_update_elem(&pairs, &slot, &no_pair, 0);
	return slot;
}

/* find_pair gives both ends of a connection on this host the same slot in pairs. */
__noinline int find_pair(struct conn *c)
{
	struct pair_key k = {};
	if (!c)
		return NO_SLOT;
	key_of(c, &k);
	u32 *have = bpf_map_lookup_elem(&pair_slots, &k);
	if (have)
		return *have;
	u32 slot = new_pair();
	if (slot == (u32)NO_SLOT) {
		count(C_PAIRS_FULL, 1);
		return NO_SLOT;
	}
	if (bpf_map_update_elem(&pair_slots, &k, &slot, BPF_NOEXIST)) { /* the other end was first */
		bpf_map_push_elem(&free_pairs, &slot, 0);
		have = bpf_map_lookup_elem(&pair_slots, &k);
		return have ? *have : NO_SLOT;
	}
	return slot;
}

/* leave_pair gives the slot back once both ends have left it. */
__noinline int leave_pair(struct conn *c)
{
	struct pair_key k = {};
	if (!c)
		return 0;
	struct pair *p = pair_of(c);
	u32 slot = c->pair;
	c->pair = NO_SLOT;
	if (!p || __sync_fetch_and_add(&p->refs, -1) != 1)
		return 0;
	key_of(c, &k);
	bpf_map_delete_elem(&pair_slots, &k);
	bpf_map_push_elem(&free_pairs, &slot, 0);
	return 0;
}

/* pair_up has an end of a connection find the other. A third end is one of another connection with the same addresses,
 * in other namespaces: no end can be told from another, and none is given anything. */
__noinline int pair_up(struct conn *c)
{
	if (!c || c->pair != (u32)NO_SLOT)
		return 0;
	c->pair = find_pair(c);
	struct pair *p = pair_of(c);
	if (!p)
		return 0;
	u64 *end = &p->ends[c->role == CLIENT];
	if (__sync_val_compare_and_swap(end, 0, c->cookie)) {
		count(C_AMBIGUOUS, 1);
		p->ambiguous = 1;
		p->client = 0;
		c->pair = NO_SLOT;
		return 0;
	}
	__sync_fetch_and_add(&p->refs, 1);
	if (c->role == CLIENT)
		p->client = !p->ambiguous && !c->observer;
	if (c->observer)
		p->observer = c->observer;
	else
		c->observer = p->observer;
	return 0;
}

/* observes notes that a connection is one of an observer: its calls are not those of a user. The other end learns it
 * from the pair. */
static __always_inline void observes(struct conn *c, u32 who)
{
	struct pair *p = pair_of(c);
	if (!c->observer) {
		c->observer = who;
		c->published = 0; /* it is reported at once */
	}
	if (p && !p->ambiguous)
		p->observer = c->observer;
}

/* learn_observer looks whether a connection is one of an observer: by what the other end knows, and by what the server
 * listed. */
__noinline int learn_observer(struct conn *c)
{
	struct observer_key k = {};
	if (!c || c->observer)
		return 0;
	struct pair *p = pair_of(c);
	if (p && p->observer && !p->ambiguous) {
		c->observer = p->observer;
		return 0;
	}
	bool server = c->role == SERVER;
	__builtin_memcpy(k.addr, server ? c->at.raddr : c->at.laddr, 16);
	k.port = server ? c->at.rport : c->at.lport;
	k.node = c->node & ~BY_PORT;
	u64 *listed = bpf_map_lookup_elem(&observers, &k);
	if (listed && c->opened < *listed)
		observes(c, OTHER);
	return 0;
}

/* is_own_socket: slowpath itself made the socket. */
static __always_inline bool is_own_socket(const struct sock *sk)
{
	u64 cookie = bpf_get_socket_cookie((void *)sk);
	return bpf_map_lookup_elem(&own_sockets, &cookie);
}

/* create follows a connection, if it is one of a watched server. Where there is no room for it, a counter says so;
 * C_MAX: none. */
static __noinline struct conn *create(const struct sock *sk, u32 role, bool fresh, u64 now, u32 no_room)
{
	struct shared *g = shared();
	struct between at;
	addresses(sk, &at);
	u32 net = net_of(sk), node = node_at(&at, role, net);
	if (!g || node == NO_NODE)
		return NULL;
	if (g->conns >= max_conns) {
		count(no_room, 1);
		return NULL;
	}
	struct conn *c = bpf_sk_storage_get(&conns, (void *)sk, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!c) {
		count(C_NO_MEMORY, 1);
		return NULL;
	}
	__sync_fetch_and_add(&g->conns, 1);
	count(C_CONNS, 1);
	c->role = role;
	c->cookie = __sync_fetch_and_add(&g->next_cookie, 1) + 1;
	c->aligned = fresh;
	c->opened = fresh ? now : 0;
	c->last_in = c->last_out = now;
	c->published = now;
	c->slot = c->slot_before = c->pair = NO_SLOT;
	c->at = at;
	c->net = net;
	c->node = node;
	c->light = role == CLIENT && !strict_all && same_host(&at);
	c->remote = role == SERVER && !same_host(&at);
	c->strict = strict_all || !fresh;
	if (role == CLIENT && is_own_socket(sk)) {
		c->observer = OWN;
		c->ignore = 1;
	}
	if (at.lport && sk->__sk_common.skc_state != TCP_SYN_SENT) { /* before, its port may not be chosen yet */
		pair_up(c);
		learn_observer(c);
	}
	return c;
}

static __always_inline void fill_addr(struct addr *a, struct conn *c)
{
	a->family = c->at.family;
	a->lport = c->at.lport;
	a->rport = c->at.rport;
	a->role = c->role;
	a->tls = c->tls;
	__builtin_memcpy(a->laddr, c->at.laddr, 16);
	__builtin_memcpy(a->raddr, c->at.raddr, 16);
	a->net = c->net;
	a->node = c->node;
	a->observer = c->observer;
	a->unused = 0;
}

/* closer_of tells which end closed a connection first. A reset that was received shows in sk_err, which is set before
 * the state (net/ipv4/tcp_input.c, tcp_reset); so does a timeout. */
static __always_inline enum closed_by closer_of(const struct conn *c, u32 oldstate, int error)
{
	if (c->peer_closed)
		return CLOSED_BY_PEER;
	if (oldstate != TCP_ESTABLISHED && oldstate != TCP_SYN_SENT)
		return CLOSED_BY_THIS_END; /* it had sent its FIN */
	if (!error)
		return CLOSED_BY_THIS_END;
	bool reset = error == ECONNRESET || error == EPIPE;
	return oldstate == TCP_ESTABLISHED && reset ? CLOSED_BY_PEER : CLOSED_BY_NEITHER;
}

/* report_conn reports what happened to a connection; before is its state before a close, with the error of its socket
 * in the upper half. */
__noinline int report_conn(struct conn *c, u32 type, u32 before, u64 now)
{
	if (!c)
		return 0;
	struct conn_event *e = reserve(struct conn_event);
	if (!e)
		return 0;
	e->type = type;
	e->role = c->role;
	e->aligned = c->aligned;
	e->error = before >> 16;
	e->state = before;
	e->outstanding = c->alert ? 0 : c->outstanding;
	e->op = e->args = 0;
	e->req_bytes = e->blocking = 0;
	e->nagle = c->nagle;
	if (type == EV_CLOSE && e->outstanding && c->head != c->tail) {
		struct pending *p = &c->ring[c->head & (RING - 1)];
		e->blocking = p->flags & F_BLOCKING || tls_blocks(c);
		e->op = c->aligned ? p->op : 0;
		e->args = p->args;
		e->req_bytes = p->bytes;
	}
	e->closed_by = type == EV_CLOSE ? closer_of(c, e->state, e->error) : CLOSED_BY_NEITHER;
	e->tid = c->tid;
	e->tgid = c->tgid;
	fill_addr(&e->addr, c);
	e->conn = c->cookie;
	e->now = now;
	e->opened = c->opened;
	e->dialled = c->dialled;
	e->last_in = c->last_in;
	e->last_out = c->last_out;
	e->peer_closed = c->peer_closed;
	e->peer_idle_ns = c->peer_idle_ns;
	e->peer_waiting = c->peer_waiting < 65535 ? c->peer_waiting : 65535;
	e->calls = c->calls;
	e->in_flight_ns = c->in_flight_ns;
	e->no_calls = c->no_calls;
	if (e->outstanding != c->blocking && now > c->in_flight_since)
		e->in_flight_ns += now - c->in_flight_since;
	e->idle_ns = c->idle_ns;
	e->idle_max = c->idle_max;
	e->prompt = c->prompt;
	e->turns = c->turns;
	e->handed = c->handed;
	e->waited_ns = c->waited_ns;
	e->waited_max = c->waited_max;
	e->kept_ns = c->kept_ns;
	e->served = c->served;
	if (type == EV_CLOSE && c->role == CLIENT)
		end_chain(c);
	e->chains = c->chains;
	e->transactions = c->transactions;
	__builtin_memset(e->comm, 0, 16);
	if (c->tgid && shown_tgid() == c->tgid) /* other tasks may run the code that opens and closes */
		bpf_get_current_comm(e->comm, 16);
	submit(e);
	return 0;
}

/* nagle_of is whether the kernel holds back small segments of a socket (tcp_nagle_check of net/ipv4/tcp_output.c). */
static __always_inline enum nagle nagle_of(struct tcp_sock *tp)
{
	if (!bpf_core_field_exists(tp->nonagle))
		return NAGLE_UNKNOWN;
	return BPF_CORE_READ_BITFIELD_PROBED(tp, nonagle) & TCP_NAGLE_OFF ? NAGLE_OFF : NAGLE_ON;
}

/* peer_closes: the FIN of the peer came. The process may notice much later, such as when it sends its next request. */
static __always_inline void peer_closes(struct conn *c, u64 now)
{
	u64 last = c->last_in > c->last_out ? c->last_in : c->last_out;
	c->peer_closed = now;
	c->peer_idle_ns = now > last ? now - last : 0;
	c->peer_waiting = c->outstanding;
}

/* dials: a client's thread sends a SYN. */
static __always_inline void dials_to(struct dial *d)
{
	u32 slot;
	struct thread *t = watched(bpf_get_current_task_btf(), &slot);
	if (t && !t->server)
		t->caller.dials = 1;
	d->tid = shown_tid();
	d->tgid = shown_tgid();
}

/* not_watched follows a dial to a port of a server at an address that is not watched, up to its failure. */
static __always_inline void not_watched(const struct sock *sk, int oldstate, int newstate, u64 now)
{
	u64 key = (u64)sk;
	if (newstate == TCP_SYN_SENT) {
		struct dial fresh = {.from = now};
		dials_to(&fresh);
		bpf_map_update_elem(&dials, &key, &fresh, 0);
		return;
	}
	struct dial *d = oldstate == TCP_SYN_SENT ? bpf_map_lookup_elem(&dials, &key) : NULL;
	if (!d)
		return;
	struct not_dialled_event *e = newstate == TCP_CLOSE ? reserve(struct not_dialled_event) : NULL;
	if (e) {
		struct between at;
		addresses(sk, &at);
		__builtin_memset(e, 0, sizeof(*e));
		e->type = EV_NOT_DIALLED;
		e->tid = d->tid;
		e->tgid = d->tgid;
		e->rport = at.rport;
		__builtin_memcpy(e->raddr, at.raddr, 16);
		e->from = d->from;
		e->to = now;
		submit(e);
	}
	bpf_map_delete_elem(&dials, &key);
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(on_state, const struct sock *sk, const int oldstate, const int newstate)
{
	struct conn *c = conn_of(sk);
	u64 now = monotonic_ns();
	if (!c) {
		u32 role = role_of(sk);
		if (!role && swap16(sk->__sk_common.skc_dport) == SENTINEL)
			not_watched(sk, oldstate, newstate, now);
		if (!role)
			return 0;
		if (newstate == TCP_SYN_SENT && role == CLIENT) {
			c = create(sk, CLIENT, true, now, C_CONNS_FULL);
			if (!c) {
				not_watched(sk, oldstate, newstate, now);
				return 0;
			}
			struct dial d;
			dials_to(&d);
			c->opened = 0;
			c->dialled = now;
			c->tgid = d.tgid;
			c->tid = d.tid;
			if (!c->ignore)
				tell_program(c->tgid);
		} else if (newstate == TCP_ESTABLISHED && oldstate == TCP_SYN_RECV && role == SERVER) {
			c = create(sk, SERVER, true, now, C_CONNS_FULL);
			if (c)
				report_conn(c, EV_OPEN, 0, now);
		} else if (role == CLIENT) {
			not_watched(sk, oldstate, newstate, now);
		}
		return 0;
	}
	if (newstate == TCP_ESTABLISHED) {
		c->opened = now;
		/* the local port and address may be chosen after the SYN */
		addresses(sk, &c->at);
		c->light = c->role == CLIENT && !strict_all && same_host(&c->at);
		pair_up(c);
		learn_observer(c);
		report_conn(c, EV_OPEN, 0, now);
	} else if (newstate == TCP_CLOSE_WAIT) {
		peer_closes(c, now);
	} else if (newstate == TCP_CLOSE) {
		learn_observer(c);
		c->nagle = nagle_of((struct tcp_sock *)sk);
		report_conn(c, EV_CLOSE, (u32)sk->sk_err << 16 | (u16)oldstate, now);
		leave_pair(c);
		struct shared *g = shared();
		if (g)
			__sync_fetch_and_add(&g->conns, -1);
		bpf_sk_storage_delete(&conns, (void *)sk);
	}
	return 0;
}

SEC("tp_btf/tcp_retransmit_skb")
int BPF_PROG(on_retransmit, const struct sock *sk)
{
	struct conn *c = conn_of(sk);
	if (!c)
		return 0;
	struct retrans_event *e = reserve(struct retrans_event);
	if (!e)
		return 0;
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)sk;
	e->type = EV_RETRANS;
	e->state = sk->__sk_common.skc_state;
	e->ca_state = BPF_CORE_READ_BITFIELD_PROBED(icsk, icsk_ca_state);
	e->backoff = BPF_CORE_READ(icsk, icsk_backoff);
	e->rto_us = (BPF_CORE_READ(tp, srtt_us) >> 3) + BPF_CORE_READ(tp, rttvar_us); /* __tcp_set_rto of net/ipv4/tcp.h */
	e->dups = bpf_core_field_exists(tp->dsack_dups) ? BPF_CORE_READ(tp, dsack_dups) : 0;
	e->total = BPF_CORE_READ(tp, total_retrans);
	e->seq = BPF_CORE_READ(tp, snd_una);
	e->unacked = BPF_CORE_READ(tp, snd_nxt) - e->seq;
	fill_addr(&e->addr, c);
	e->now = monotonic_ns();
	e->last_out = c->light ? 0 : c->last_out; /* light: it is not kept */
	submit(e);
	return 0;
}

/* ready: bytes are in the socket. */
static __always_inline int ready(const struct sock *sk)
{
	if (left_out(sk) || skip_light(sk))
		return 0;
	struct conn *c = conn_of(sk);
	if (!c || c->ignore || c->light)
		return 0;
	struct tcp_sock *tp = bpf_skc_to_tcp_sock((void *)sk);
	if (!tp)
		return 0;
	u64 now = monotonic_ns();
	u32 seq = tp->rcv_nxt;
	u32 tail = c->mark_tail;
	count(C_SEGMENTS, 1);
	if (tail - c->mark_head >= MARKS) { /* more segments than marks: the last mark also counts for the rest */
		struct mark *last = &c->marks[(tail - 1) & (MARKS - 1)];
		last->seq = seq;
		c->marks_full = now;
		count(C_MARKS_FULL, 1);
		return 0;
	}
	struct mark *m = &c->marks[tail & (MARKS - 1)];
	m->seq = seq;
	m->ns = now;
	read_clocks(c->slot, now, &m->clk);
	in_order(&c->mark_tail);
	c->mark_tail = tail + 1;
	return 0;
}

SEC("tp_btf/sk_data_ready")
int BPF_PROG(on_ready, const struct sock *sk)
{
	return ready(sk);
}

#endif
