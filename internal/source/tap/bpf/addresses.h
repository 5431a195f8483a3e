/* Addresses of sockets, and what they say of where the two ends are. */
#ifndef SLOWPATH_ADDRESSES_H
#define SLOWPATH_ADDRESSES_H

static __always_inline u8 port_use(u16 port)
{
	u32 key = port;
	u8 *use = bpf_map_lookup_elem(&ports, &key);
	return use ? *use : PORT_UNUSED;
}

static __always_inline bool watched_port(u16 port)
{
	return port_use(port) == PORT_OF_SERVER;
}

static __always_inline u16 swap16(u16 v)
{
	return v << 8 | v >> 8;
}

/* left_out gives which end of a connection that is not followed at the moment a socket is, since the programs would
 * take too much CPU time (connection_sample.go); 0: it is none. Both ends are known by the client's port. */
static __always_inline u32 left_out(const struct sock *sk)
{
	u8 use = port_use(sk->__sk_common.skc_num);
	if (use == PORT_LEFT_OUT)
		return CLIENT;
	return use == PORT_OF_SERVER && port_use(swap16(sk->__sk_common.skc_dport)) == PORT_LEFT_OUT ? SERVER : 0;
}

/* is_loopback: an address that each network namespace has for itself. */
static __always_inline bool is_loopback(const u8 *a)
{
	const u32 *w = (const u32 *)a;
	if (w[0] || w[1])
		return false;
	return w[2] == __builtin_bswap32(0xffff) ? a[12] == 127 : !w[2] && w[3] == __builtin_bswap32(1);
}

/* net_of is the number of a socket's network namespace, as /proc/PID/ns/net has it. */
static __always_inline u32 net_of(const struct sock *sk)
{
	return BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
}

/* addresses notes between which addresses a socket is: IPv4 as mapped into IPv6. */
static __always_inline void addresses(const struct sock *sk, struct between *b)
{
	b->family = sk->__sk_common.skc_family;
	b->lport = sk->__sk_common.skc_num;
	b->rport = swap16(sk->__sk_common.skc_dport);
	__builtin_memset(b->laddr, 0, 16);
	__builtin_memset(b->raddr, 0, 16);
	if (b->family == AF_INET6) {
		BPF_CORE_READ_INTO((struct in6_addr *)b->laddr, sk, __sk_common.skc_v6_rcv_saddr);
		BPF_CORE_READ_INTO((struct in6_addr *)b->raddr, sk, __sk_common.skc_v6_daddr);
	} else {
		b->laddr[10] = b->laddr[11] = b->raddr[10] = b->raddr[11] = 0xff;
		*(u32 *)(b->laddr + 12) = sk->__sk_common.skc_rcv_saddr;
		*(u32 *)(b->raddr + 12) = sk->__sk_common.skc_daddr;
	}
}

/* same_host: both ends have the same address, so that both are sockets of this host, in one network namespace. */
static __always_inline bool same_host(const struct between *b)
{
	const u64 *l = (const u64 *)b->laddr, *r = (const u64 *)b->raddr;
	return l[0] == r[0] && l[1] == r[1];
}

/* both_here is the same for a socket whose connection has not been found yet. A socket of IPv6 has its IPv4 addresses,
 * too, but none that says anything where it is not a mapped one (LOOPBACK4_IPV6). */
static __always_inline bool both_here(const struct sock *sk)
{
	if (sk->__sk_common.skc_family != AF_INET6)
		return sk->__sk_common.skc_daddr && sk->__sk_common.skc_daddr == sk->__sk_common.skc_rcv_saddr;
	const u32 *l = sk->__sk_common.skc_v6_rcv_saddr.in6_u.u6_addr32;
	const u32 *r = sk->__sk_common.skc_v6_daddr.in6_u.u6_addr32;
	return r[3] && l[3] == r[3] && l[2] == r[2] && l[1] == r[1] && l[0] == r[0];
}

#endif
