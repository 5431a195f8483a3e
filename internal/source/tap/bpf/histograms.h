/* Histograms of how long calls took, and operations: what their threads waited for them. */
#ifndef SLOWPATH_HISTOGRAMS_H
#define SLOWPATH_HISTOGRAMS_H

/* log2u is the position of the highest bit. */
static __always_inline u32 log2u(u64 v)
{
	u32 r = 0;
	if (v >> 32) { v >>= 32; r += 32; }
	if (v >> 16) { v >>= 16; r += 16; }
	if (v >> 8) { v >>= 8; r += 8; }
	if (v >> 4) { v >>= 4; r += 4; }
	if (v >> 2) { v >>= 2; r += 2; }
	return r + (v >> 1);
}

/* hist_step is where a histogram counts a time. */
static __always_inline u32 hist_step(u64 ns)
{
	u32 i = ns;
	if (ns >= 1 << HIST_BITS) {
		u32 e = log2u(ns);
		i = ((e - HIST_BITS + 1) << HIST_BITS) + ((ns >> (e - HIST_BITS)) & ((1 << HIST_BITS) - 1));
	}
	return i < HIST ? i : HIST - 1;
}

__noinline int add_latency(u32 op, u32 role, u64 ns, u32 n)
{
	u32 key = op * 2 + (role == CLIENT);
	struct hist *h = bpf_map_lookup_elem(&hists, &key);
	if (!h)
		return 0;
	h->n[hist_step(ns)] += n;
	return 0;
}

/* add_operation has n operations counted for the time that their thread waited, and their calls no more. */
static __always_inline void add_operation(u32 op, u64 call_ns, u64 ns, u32 n)
{
	u32 key = op * 2;
	struct hist *calls = bpf_map_lookup_elem(&operations, &key);
	key++;
	struct hist *all = bpf_map_lookup_elem(&operations, &key);
	if (!calls || !all)
		return;
	__sync_fetch_and_add(&calls->n[hist_step(call_ns)], n);
	__sync_fetch_and_add(&all->n[hist_step(ns)], n);
}

#endif
