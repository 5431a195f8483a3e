/* Questions to name servers, by all processes: which of them will dial a watched server is known only after its lookup. Sockets that were
 * connected to port 53, as the resolvers of glibc, Go and c-ares do; one that sends without (musl) has no port to know it by. */
#ifndef SLOWPATH_LOOKUPS_H
#define SLOWPATH_LOOKUPS_H

static __always_inline bool asks_names(const struct sock *sk)
{
	u16 family = sk->__sk_common.skc_family;
	return sk->__sk_common.skc_dport == __builtin_bswap16(53) && (family == AF_INET_ || family == AF_INET6_);
}

static __always_inline int looked_up(const struct sock *sk, u8 answer)
{
	struct lookup_event *e = reserve(struct lookup_event);
	if (!e)
		return 0;
	e->type = EV_LOOKUP;
	e->answer = answer;
	e->unused = 0;
	e->tgid = bpf_get_current_pid_tgid() >> 32;
	e->now = wall();
	e->sock = (u64)sk;
	bpf_get_current_comm(e->comm, sizeof(e->comm));
	submit(e);
	return 0;
}

#endif
