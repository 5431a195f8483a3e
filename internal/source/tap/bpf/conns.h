/* Connections: which sockets are watched, which processes have their ends, and what happened to them. The state of a
 * connection is stored with its socket, and so ends with it. */
#ifndef SLOWPATH_CONNS_H
#define SLOWPATH_CONNS_H

static __always_inline bool watched_port(u16 port)
{
	u32 key = port;
	u8 *on = bpf_map_lookup_elem(&ports, &key);
	return on && *on;
}

static __always_inline u16 swap16(u16 v)
{
	return v << 8 | v >> 8;
}

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

static __always_inline void addresses(const struct sock *sk, u8 *local, u8 *remote, u16 *lport, u16 *rport, u16 *family)
{
	*family = sk->__sk_common.skc_family;
	*lport = sk->__sk_common.skc_num;
	*rport = swap16(sk->__sk_common.skc_dport);
	__builtin_memset(local, 0, 16);
	__builtin_memset(remote, 0, 16);
	if (*family == AF_INET6) {
		BPF_CORE_READ_INTO((struct in6_addr *)local, sk, __sk_common.skc_v6_rcv_saddr);
		BPF_CORE_READ_INTO((struct in6_addr *)remote, sk, __sk_common.skc_v6_daddr);
	} else { /* as IPv4 mapped into IPv6 */
		local[10] = local[11] = remote[10] = remote[11] = 0xff;
		*(u32 *)(local + 12) = sk->__sk_common.skc_rcv_saddr;
		*(u32 *)(remote + 12) = sk->__sk_common.skc_daddr;
	}
}

static __always_inline struct conn *conn_of(const struct sock *sk)
{
	return bpf_sk_storage_get(&conns, (void *)sk, 0, 0);
}

/* find_pair gives both ends of a connection on this host the same slot in pairs. */
__noinline int find_pair(struct conn *c)
{
	struct pair_key k = {};
	if (!c)
		return PAIRS;
	if (c->role == SERVER) {
		__builtin_memcpy(k.client, c->raddr, 16);
		__builtin_memcpy(k.server, c->laddr, 16);
		k.cport = c->rport;
		k.sport = c->lport;
	} else {
		__builtin_memcpy(k.client, c->laddr, 16);
		__builtin_memcpy(k.server, c->raddr, 16);
		k.cport = c->lport;
		k.sport = c->rport;
	}
	u32 *have = bpf_map_lookup_elem(&pair_slots, &k);
	if (have)
		return *have;
	struct shared *g = shared();
	if (!g)
		return PAIRS;
	u32 slot = __sync_fetch_and_add(&g->next_pair, 1) & (PAIRS - 1);
	if (bpf_map_update_elem(&pair_slots, &k, &slot, BPF_NOEXIST)) {
		have = bpf_map_lookup_elem(&pair_slots, &k);
		return have ? *have : PAIRS;
	}
	return slot;
}

__noinline int delete_pair(struct conn *c)
{
	struct pair_key k = {};
	if (!c || c->role != SERVER)
		return 0;
	__builtin_memcpy(k.client, c->raddr, 16);
	__builtin_memcpy(k.server, c->laddr, 16);
	k.cport = c->rport;
	k.sport = c->lport;
	return bpf_map_delete_elem(&pair_slots, &k);
}

/* same_host: both ends have the same address, so that both are sockets of this host. */
static __always_inline bool same_host(struct conn *c)
{
	u64 *l = (u64 *)c->laddr, *r = (u64 *)c->raddr;
	return l[0] == r[0] && l[1] == r[1];
}

/* both_here is the same for a socket whose connection has not been found yet. It knows IPv4 only. */
static __always_inline bool both_here(const struct sock *sk)
{
	return sk->__sk_common.skc_daddr && sk->__sk_common.skc_daddr == sk->__sk_common.skc_rcv_saddr;
}

/* skip_light: the socket is the client's end of a connection whose server's end parses for both. */
static __always_inline bool skip_light(const struct sock *sk)
{
	return !strict_all && both_here(sk) && !watched_port(sk->__sk_common.skc_num);
}

static __always_inline void pair_up(struct conn *c)
{
	u32 slot = find_pair(c);
	c->pair = slot;
	struct pair *p = bpf_map_lookup_elem(&pairs, &slot);
	if (p && c->role == CLIENT) {
		p->client = 1;
		p->own = 0;
	}
}

/* ignore_own ignores the client's end of a connection of slowpath, and notes that for the server's end. */
static __always_inline void ignore_own(struct conn *c)
{
	u32 slot = c->pair;
	struct pair *p = bpf_map_lookup_elem(&pairs, &slot);
	if (p)
		p->own = 1;
	c->ignore = 1;
}

/* is_own_call: the call is one of slowpath itself. There are few. */
static __always_inline bool is_own_call(struct conn *c)
{
	u32 slot = c->pair;
	struct pair *p = bpf_map_lookup_elem(&pairs, &slot);
	return p && p->own;
}

static __always_inline struct conn *create(const struct sock *sk, u32 role, bool fresh, u64 now)
{
	struct shared *g = shared();
	if (!g || g->conns >= max_conns) {
		count(C_NO_MEMORY, 1);
		return NULL;
	}
	struct conn *c = bpf_sk_storage_get(&conns, (void *)sk, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!c) {
		count(C_NO_MEMORY, 1);
		return NULL;
	}
	__sync_fetch_and_add(&g->conns, 1);
	c->role = role;
	c->cookie = __sync_fetch_and_add(&g->next_cookie, 1) + 1;
	c->aligned = fresh;
	c->opened = fresh ? now : 0;
	c->last_in = c->last_out = now;
	c->published = now;
	c->slot = THREADS;
	addresses(sk, c->laddr, c->raddr, &c->lport, &c->rport, &c->family);
	c->light = role == CLIENT && !strict_all && same_host(c);
	c->remote = role == SERVER && !same_host(c);
	c->strict = strict_all || !fresh;
	pair_up(c);
	return c;
}

static __always_inline void fill_addr(struct addr *a, struct conn *c)
{
	a->family = c->family;
	a->lport = c->lport;
	a->rport = c->rport;
	a->role = c->role;
	a->tls = c->tls;
	__builtin_memcpy(a->laddr, c->laddr, 16);
	__builtin_memcpy(a->raddr, c->raddr, 16);
}

/* closer_of tells which end closed a connection first. A reset that was received shows in sk_err, which is set before
 * the state (net/ipv4/tcp_input.c, tcp_reset); so does a timeout. */
static __always_inline enum closed_by closer_of(const struct conn *c, u32 oldstate, int error)
{
	if (c->passive_close)
		return CLOSED_BY_PEER;
	if (oldstate != TCP_ESTABLISHED && oldstate != TCP_SYN_SENT)
		return CLOSED_BY_THIS_END; /* it had sent its FIN */
	if (!error)
		return CLOSED_BY_THIS_END;
	bool reset = error == ECONNRESET || error == EPIPE;
	return oldstate == TCP_ESTABLISHED && reset ? CLOSED_BY_PEER : CLOSED_BY_NEITHER;
}

/* See tls.h. */
static __always_inline bool tls_blocks(struct conn *c);

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
	e->calls = c->calls;
	e->in_flight_ns = c->in_flight_ns;
	e->no_calls = c->no_calls;
	if (e->outstanding != c->blocking && now > c->in_flight_since)
		e->in_flight_ns += now - c->in_flight_since;
	e->idle_ns = c->idle_ns;
	e->prompt = c->prompt;
	__builtin_memset(e->comm, 0, 16);
	if (bpf_get_current_pid_tgid() >> 32 == c->tgid) /* other tasks may run the code that opens and closes */
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

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(on_state, const struct sock *sk, const int oldstate, const int newstate)
{
	struct conn *c = conn_of(sk);
	u64 now = monotonic_ns();
	if (!c) {
		u32 role = role_of(sk);
		if (!role)
			return 0;
		if (newstate == TCP_SYN_SENT && role == CLIENT) {
			u32 tgid = bpf_get_current_pid_tgid() >> 32;
			c = create(sk, CLIENT, true, now);
			if (!c)
				return 0;
			c->opened = 0;
			c->dialled = now;
			c->tgid = tgid;
			c->tid = (u32)bpf_get_current_pid_tgid();
		} else if (newstate == TCP_ESTABLISHED && oldstate == TCP_SYN_RECV && role == SERVER) {
			c = create(sk, SERVER, true, now);
			if (c)
				report_conn(c, EV_OPEN, 0, now);
		}
		return 0;
	}
	if (newstate == TCP_ESTABLISHED) {
		c->opened = now;
		/* the local port and address may be chosen after the SYN */
		addresses(sk, c->laddr, c->raddr, &c->lport, &c->rport, &c->family);
		c->light = c->role == CLIENT && !strict_all && same_host(c);
		pair_up(c);
		report_conn(c, EV_OPEN, 0, now);
	} else if (newstate == TCP_CLOSE_WAIT) {
		c->passive_close = 1;
	} else if (newstate == TCP_CLOSE) {
		c->nagle = nagle_of((struct tcp_sock *)sk);
		report_conn(c, EV_CLOSE, (u32)sk->sk_err << 16 | (u16)oldstate, now);
		delete_pair(c);
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
	if (skip_light(sk))
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
	if (tail - c->mark_head >= MARKS) { /* more segments than marks: the last mark also counts for the rest */
		struct mark *last = &c->marks[(tail - 1) & (MARKS - 1)];
		last->seq = seq;
		c->marks_full = now;
		return 0;
	}
	struct mark *m = &c->marks[tail & (MARKS - 1)];
	m->seq = seq;
	m->ns = now;
	read_clocks(c->slot, now, &m->clk);
	barrier();
	c->mark_tail = tail + 1;
	return 0;
}

SEC("tp_btf/sk_data_ready")
int BPF_PROG(on_ready, const struct sock *sk)
{
	return ready(sk);
}

#endif
