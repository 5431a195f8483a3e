/* DNS queries of all processes: which of them will connect to a watched server is known only after its query. Only
 * sockets that are connected to port 53 are seen, as in the resolvers of glibc, Go and c-ares; musl sends without
 * connecting. */
#ifndef SLOWPATH_DNS_H
#define SLOWPATH_DNS_H

static __always_inline bool is_dns(const struct sock *sk)
{
	u16 family = sk->__sk_common.skc_family;
	return sk->__sk_common.skc_dport == __builtin_bswap16(53) && (family == AF_INET || family == AF_INET6);
}

static __always_inline int report_dns(const struct sock *sk, u8 answer)
{
	struct dns_event *e = reserve(struct dns_event);
	if (!e)
		return 0;
	struct between b;
	addresses(sk, &b);
	e->type = EV_DNS;
	e->answer = answer;
	e->port = b.lport;
	e->tgid = shown_tgid();
	e->tid = shown_tid();
	e->now = monotonic_ns();
	e->sock = (u64)sk;
	bpf_get_current_comm(e->comm, sizeof(e->comm));
	__builtin_memcpy(e->server, b.raddr, sizeof(e->server));
	submit(e);
	return 0;
}

#endif
