/* Nodes: which of the watched servers a connection belongs to. That is found out when it begins, so that no call pays
 * for it, and a connection of another server takes no memory. Each command of each node has a number of its own, which
 * keeps their histograms apart. */
#ifndef SLOWPATH_NODES_H
#define SLOWPATH_NODES_H

enum { NO_NODE = 0xffff };

/* Network namespace of a server whose own is not known. */
enum { ANY_NET = -1 };

/* What shows a node: an address and port at which it is reached, in one namespace if the address is a loopback one; a
 * port in the namespace of its process (the address is zero); its process (the namespace is zero, too). */
struct node_key {
	u8 addr[16];
	u32 id;  /* port, or process as slowpath's /proc has it */
	u32 net; /* number of the network namespace */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct node_key);
	__type(value, u32); /* from 1 on */
} nodes SEC(".maps");

/* Set in a node's number where only its port and namespace show it: another process may have the port at another
 * address. */
enum { BY_PORT = 0x10000 };

/* node_in finds what is the same in each network namespace: in this one, or where that of the node is not known. */
static __always_inline u32 node_in(struct node_key *k, u32 net)
{
	k->net = net;
	u32 *node = bpf_map_lookup_elem(&nodes, k);
	if (!node && net) {
		k->net = ANY_NET;
		node = bpf_map_lookup_elem(&nodes, k);
	}
	return node ? *node : NO_NODE;
}

/* node_at finds a node by the addresses of a connection. */
__noinline int node_at(struct between *b, u32 role, u32 net)
{
	struct node_key k = {};
	if (!b)
		return NO_NODE;
	__builtin_memcpy(k.addr, role == SERVER ? b->laddr : b->raddr, 16);
	k.id = role == SERVER ? b->lport : b->rport;
	u32 node = node_in(&k, is_loopback(k.addr) ? net : 0);
	if (node != NO_NODE || role == CLIENT)
		return node;
	__builtin_memset(k.addr, 0, 16);
	node = node_in(&k, net);
	return node == NO_NODE ? node : node | BY_PORT;
}

/* check_node looks at the process, when a server reads from a connection for the first time. */
static __always_inline void check_node(struct conn *c)
{
	struct node_key k = {.id = c->tgid};
	if (c->node_checked || c->role != SERVER)
		return;
	c->node_checked = 1;
	u32 *by_process = bpf_map_lookup_elem(&nodes, &k);
	if (by_process)
		c->node = *by_process;
	else if (c->node & BY_PORT)
		c->ignore = 1;
	c->node &= ~BY_PORT;
}

#endif
