/* Peers: other services that the threads of clients wait for, such as a database. */
#ifndef SLOWPATH_PEERS_H
#define SLOWPATH_PEERS_H

/* peer_of is who is at the other end of a socket; false: one that calls this process. A service listens at the lower
 * port: those of its callers are from 32768 on (ip_local_port_range). Bound: kernel. */
static __always_inline bool peer_of(struct sock *sk, struct peer_key *k)
{
	u16 family = sk->__sk_common.skc_family;
	__builtin_memset(k, 0, sizeof(*k));
	k->family = family;
	if (family != AF_INET && family != AF_INET6)
		return family == AF_UNIX;
	struct between at;
	addresses(sk, &at);
	__builtin_memcpy(k->addr, at.raddr, 16);
	k->port = at.rport;
	return at.rport < at.lport;
}

/* read_peer: a thread has read from a socket that is none of Redis. If it calls Redis, its last sleep was for that: not
 * where it waits for whatever comes first. */
static __noinline int read_peer(struct sock *sk)
{
	u32 slot;
	struct thread *t = watched(bpf_get_current_task_btf(), &slot);
	if (!t || t->server || !t->caller.slept_to || !sk)
		return 0;
	struct caller *c = &t->caller;
	u32 why = c->why;
	u64 ns = c->slept_to - c->slept_from;
	struct peer_key k;
	if ((why != FOR_OTHERS && (why != FOR_EVENTS || c->loop)) || !peer_of(sk, &k))
		return 0;
	k.tgid = t->tgid;
	struct peer *p = bpf_map_lookup_elem(&peers, &k);
	if (!p) {
		bpf_map_update_elem(&peers, &k, &no_peer, BPF_NOEXIST);
		p = bpf_map_lookup_elem(&peers, &k);
	}
	if (p) {
		__sync_fetch_and_add(&p->ns, ns);
		__sync_fetch_and_add(&p->waits, 1);
	}
	c->waits.ns[why & REASON_MASK] -= ns;
	c->waits.ns[FOR_PEERS] += ns;
	c->slept_to = 0;
	c->print = 0; /* it does something between its calls: it does not poll */
	return 0;
}

#endif
