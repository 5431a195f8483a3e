/* Nodes: which of the watched servers a connection belongs to. That is found out once per connection, so that no call
 * pays for it. Each command of each node has a number of its own, which keeps their histograms apart. */
#ifndef SLOWPATH_NODES_H
#define SLOWPATH_NODES_H

enum { NO_NODE = 0xffff };

/* A server's process (the address is zero), or an address and port at which it is reached. */
struct node_key {
	u8 addr[16];
	u32 id;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct node_key);
	__type(value, u32); /* from 1 on */
} nodes SEC(".maps");

/* node_of must run in the thread that reads (server) or sends (client) on the connection. */
__noinline int node_of(struct conn *c)
{
	struct node_key k = {};
	if (!c)
		return NO_NODE;
	if (c->role == SERVER) {
		k.id = bpf_get_current_pid_tgid() >> 32;
		u32 *by_process = bpf_map_lookup_elem(&nodes, &k);
		if (by_process)
			return *by_process;
	}
	__builtin_memcpy(k.addr, c->role == SERVER ? c->laddr : c->raddr, 16);
	k.id = c->role == SERVER ? c->lport : c->rport;
	u32 *by_address = bpf_map_lookup_elem(&nodes, &k);
	return by_address ? *by_address : NO_NODE;
}

#endif
