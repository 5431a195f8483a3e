/* Peers: other services that the threads of clients wait for, such as a database. */
#ifndef SLOWPATH_PEERS_H
#define SLOWPATH_PEERS_H

/* peer_of is who is at the other end of a connection; false: one that calls this process. A socket that was accepted
 * is a copy of the one that listens, with its backlog (sk_clone_lock of net/core/sock.c); a Unix socket has the name of
 * the service at its end. */
static __always_inline bool peer_of(struct sock *sk, struct peer_key *k)
{
	u16 family = sk->__sk_common.skc_family;
	__builtin_memset(k, 0, sizeof(*k));
	k->family = family;
	struct unix_sock *named = (struct unix_sock *)sk;
	if (family != AF_INET && family != AF_INET6)
		return family == AF_UNIX && !(bpf_core_field_exists(named->addr) && BPF_CORE_READ(named, addr));
	struct between at;
	addresses(sk, &at);
	__builtin_memcpy(k->addr, at.raddr, 16);
	k->port = at.rport;
	return !sk->sk_max_ack_backlog;
}

static __always_inline bool same_peer(const struct peer_key *a, const struct peer_key *b)
{
	return a->port == b->port && a->family == b->family && !__builtin_memcmp(a->addr, b->addr, 16);
}

/* calling gives the thread that uses a connection that is none of Redis, if it calls Redis. Nobody waits for what is
 * sent without a connection (logs, statistics). */
static __always_inline struct thread *calling(struct sock *sk)
{
	u32 slot;
	struct thread *t = watched(bpf_get_current_task_btf(), &slot);
	return t && !t->server && sk && sk->sk_type == SOCK_STREAM ? t : NULL;
}

u32 peers_asked; /* set once a thread has asked one */

/* asks_peer: a thread sends to another service. It does more between its calls than to poll. */
static __noinline int asks_peer(struct sock *sk)
{
	struct thread *t = calling(sk);
	if (!t)
		return 0;
	t->caller.print = 0;
	if (!peer_of(sk, &t->caller.peer))
		t->caller.peer.family = 0;
	t->caller.peer.tgid = t->tgid;
	peers_asked = 1;
	if (!t->caller.peer.family)
		return 0;
	struct peer_request *r = bpf_sk_storage_get(&peer_requests, sk, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (r && !r->since) {
		r->since = monotonic_ns();
		r->tgid = t->tgid;
	}
	return 0;
}

/* peer_answers ends the request that is under way at a service, whatever thread has read the answer. */
static __noinline int peer_answers(struct sock *sk)
{
	struct peer_request *r = sk ? bpf_sk_storage_get(&peer_requests, sk, 0, 0) : NULL;
	if (!r || !r->since)
		return 0;
	struct peer_key k;
	peer_of(sk, &k);
	k.tgid = r->tgid;
	struct peer *p = peer_at(&k);
	if (p) {
		__sync_fetch_and_add(&p->flight_ns, monotonic_ns() - r->since);
		__sync_fetch_and_add(&p->requests, 1);
	}
	r->since = 0;
	return 0;
}

/* asks_redis: a thread sends to Redis. What it sleeps for now is that, and no call before. */
static __always_inline void asks_redis(void)
{
	u32 slot;
	struct thread *t = peers_asked || interpreters ? watched(bpf_get_current_task_btf(), &slot) : NULL;
	if (!t)
		return;
	t->caller.peer.family = 0;
	if (t->caller.has_read)
		done_reading(t);
}

/* read_peer: a thread has read from a connection that is none of Redis: its last sleep was for that, and not for whom
 * it had asked. */
static __noinline int read_peer(struct sock *sk)
{
	if (peers_asked)
		peer_answers(sk);
	struct thread *t = calling(sk);
	if (!t)
		return 0;
	struct caller *c = &t->caller;
	acts(t, monotonic_ns());
	u64 ns = c->slept_to - c->slept_from;
	struct peer_key k;
	bool service = peer_of(sk, &k);
	k.tgid = t->tgid;
	if (c->why == FOR_PEERS && c->peer.family && c->slept_to && !same_peer(&k, &c->peer)) {
		add_peer(&c->peer, -ns, -1);
		c->waits.ns[FOR_PEERS] -= ns;
		c->waits.ns[FOR_EVENTS] += ns;
		c->why = FOR_EVENTS;
	}
	c->peer.family = 0;
	if (!c->slept_to || !service || !may_be_for_peer(t))
		return 0;
	u32 why = c->why;
	add_peer(&k, ns, 1);
	c->waits.ns[why & REASON_MASK] -= ns;
	c->waits.ns[FOR_PEERS] += ns;
	c->slept_to = 0;
	return 0;
}

#endif
