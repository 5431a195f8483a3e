/* Snapshots of connections: the last request on each connection of a client on this host. The loader reads them when it
 * needs them (an iterator over open files), so that no call pays for it. They show which other nodes the process of a
 * slow call had sent requests to while that call waited. An iterator over the connections alone (bpf_sk_storage_map)
 * would have less to do, but hardened kernels refuse it. */
#ifndef SLOWPATH_CONN_SNAPSHOTS_H
#define SLOWPATH_CONN_SNAPSHOTS_H

struct bpf_iter_meta {
	struct seq_file *seq;
} CORE;

struct socket {
	struct sock *sk;
} CORE;

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	u32 fd;
	struct file *file;
} CORE;

/* Connections on which nothing came for so many nanoseconds are left out. */
enum { LONG_IDLE = 4000000000U };

/* last_arrival is when the last request came that a server's end has not answered; 0: there is none. */
static __always_inline u64 last_arrival(const struct conn *c)
{
	if (c->mark_tail != c->mark_head) { /* not read yet */
		u64 last = c->marks[(c->mark_tail - 1) & (MARKS - 1)].ns;
		return c->marks_full > last ? c->marks_full : last;
	}
	return c->outstanding != c->blocking ? c->batches[(c->batch_no - 1) & (BATCHES - 1)].arrived : 0;
}

SEC("iter/task_file")
int on_conn_snapshot(struct bpf_iter__task_file *it)
{
	struct file *file = it->file;
	if (!file) /* after the last one */
		return 0;
	struct socket *socket = bpf_sock_from_file(file);
	struct sock *sk = socket ? socket->sk : NULL;
	struct conn *c = sk ? bpf_sk_storage_get(&conns, sk, NULL, 0) : NULL;
	if (!c || c->ignore || c->remote)
		return 0;
	struct conn_snapshot e = {.now = monotonic_ns()};
	if (c->role == SERVER) {
		e.from = last_arrival(c);
		if (!e.from)
			return 0;
		e.outstanding = 1;
	} else {
		e.outstanding = c->outstanding - c->blocking; /* what waits by design says nothing of its node */
		if (!e.outstanding && (e.now - c->last_in > LONG_IDLE || !c->last_ns))
			return 0;
		e.from = c->in_flight_since;
		if (e.outstanding && c->tail != c->head)
			e.from = c->ring[(c->tail - 1) & (RING - 1)].start;
		e.to = c->last_in;
	}
	e.tgid = c->tgid;
	fill_addr(&e.addr, c);
	bpf_seq_write(it->meta->seq, &e, sizeof(e));
	return 0;
}

/* waits_since is when the first request came, or was sent, that has no reply and does not wait by design; 0: there is
 * none. */
static __always_inline u64 waits_since(const struct conn *c)
{
	if (c->mark_tail != c->mark_head && c->role == SERVER) /* not read yet */
		return c->marks[c->mark_head & (MARKS - 1)].ns;
	const struct pending *first = &c->ring[c->head & (RING - 1)];
	if (!c->aligned || c->outstanding == c->blocking || c->head == c->tail || first->flags & F_NO_TIME)
		return 0;
	return first->start;
}

/* on_conn_status reports how the connections were used since they were last reported, and calls that wait for their
 * replies: at the end of a watch. */
SEC("iter/task_file")
int on_conn_status(struct bpf_iter__task_file *it)
{
	struct file *file = it->file;
	if (!file)
		return 0;
	struct socket *socket = bpf_sock_from_file(file);
	struct sock *sk = socket ? socket->sk : NULL;
	struct conn *c = sk ? bpf_sk_storage_get(&conns, sk, NULL, 0) : NULL;
	if (!c || c->ignore)
		return 0;
	struct conn_snapshot e = {.now = monotonic_ns(), .from = waits_since(c)};
	if (c->last_in > c->published)
		report_conn(c, EV_STATUS, 0, e.now);
	if (!e.from || e.now - e.from < slow_ns || c->observer)
		return 0;
	e.tgid = c->tgid;
	fill_addr(&e.addr, c);
	bpf_seq_write(it->meta->seq, &e, sizeof(e));
	return 0;
}

#endif
