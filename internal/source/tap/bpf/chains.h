/* Chains: calls of one command that a client makes one after the other. None is slow; what asks for them all is. */
#ifndef SLOWPATH_CHAINS_H
#define SLOWPATH_CHAINS_H

/* end_chain counts the chain that a client's last call belongs to. */
static __always_inline void end_chain(struct conn *c)
{
	struct chain *k = &c->chain;
	u64 ns = k->until - k->since;
	if (k->calls >= CHAIN_CALLS && ns >= slow_ns) {
		c->chains.count++;
		c->chains.calls += k->calls;
		c->chains.ns += ns;
		c->chains.in_flight_ns += k->in_flight_ns;
		c->chains.op = k->op;
	}
	k->calls = 0;
	k->in_flight_ns = 0;
}

/* longest_pause is the longest one from a reply to the next request of a chain. In a walk that is known to depend on
 * the reply: what its caller does with it belongs to the walk. */
static __always_inline u64 longest_pause(u32 flags)
{
	return flags & F_WALK ? walk_pause_ns : chain_pause_ns;
}

/* in_chain adds a call of a client to its chain, from its request to its reply. Another command, a pause, or a call
 * that was sent before the last was answered ends the chain before it. */
__noinline int in_chain(struct conn *c, u32 op, u64 from, u64 to, u64 longest)
{
	if (!c)
		return 0;
	struct chain *k = &c->chain;
	u64 pause = from - k->until; /* sent before the last was answered: too large */
	if (op != k->op || pause > longest) {
		end_chain(c);
		k->since = from;
		k->op = op;
	}
	k->calls++;
	k->until = to;
	k->in_flight_ns += to - from;
	return 0;
}

#endif
