//go:build ignore
/* slowpath's kernel programs: every Redis call on this host, seen from its sockets and from the scheduler, without
 * touching client or server. Read types.h first. */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "types.h"
#include "maps.h"
#include "pids.h"
#include "clocks.h"
#include "histograms.h"
#include "callers.h"
#include "switches.h"
#include "addresses.h"
#include "nodes.h"
#include "peers.h"
#include "chains.h"
#include "commands.h"
#include "plaintext.h"
#include "programs.h"
#include "conns.h"
#include "activities.h"
#include "handovers.h"
#include "go_operations.h"
#include "calls.h"
#include "resp.h"
#include "tls.h"
#include "windows.h"
#include "fast_paths.h"
#include "acknowledgements.h"
#include "server_functions.h"
#include "dns.h"
#include "conn_snapshots.h"
#include "collections.h"

/* The BTF of the object, from which the Go side is made, must have these types. */
#define KEEP(kind, T) const kind T *keep_##T __attribute__((unused))
KEEP(struct, call_event);
KEEP(struct, activity_event);
KEEP(struct, offcpu_event);
KEEP(struct, conn_event);
KEEP(struct, retrans_event);
KEEP(struct, acked_event);
KEEP(struct, function_event);
KEEP(struct, dns_event);
KEEP(struct, collection_event);
KEEP(struct, program_event);
KEEP(struct, operation_event);
KEEP(struct, not_dialled_event);
KEEP(struct, stalled_event);
KEEP(struct, process_waits);
KEEP(struct, go_process);
KEEP(enum, go_hook);
KEEP(struct, peer_key);
KEEP(struct, peer);
KEEP(struct, sleep_key);
KEEP(struct, sleeps);
KEEP(enum, reason);
KEEP(enum, descriptor);
KEEP(struct, conn_snapshot);
KEEP(struct, error_key);
KEEP(enum, limit);
KEEP(enum, port_use);
KEEP(enum, observer);
KEEP(enum, tick);
KEEP(enum, hist_size);
KEEP(enum, counter);
KEEP(enum, tls_cookie);

char _license[] SEC("license") = "Dual MIT/GPL";

/* settle decides whether the order of calls is known, once every request has been answered. */
static __always_inline void settle(struct conn *c, u64 now)
{
	if (c->aligned || c->outstanding || c->rep.started || c->req.started)
		return;
	if (c->role == SERVER || c->exchanges >= EXCHANGES) {
		c->aligned = 1;
		count(C_ALIGNED, 1);
	}
}

/* align_by_server: everything that this client's end had sent was answered, as far as the server's end knows, and read:
 * what it sends now is the beginning of a request, and what it reads next the reply. */
static __always_inline void align_by_server(struct conn *c, struct feed *f)
{
	struct pair *pair = pair_of(c);
	if (pair && !pair->ambiguous && pair->settled == ALL_ANSWERED_ALIGNED && pair->requested_seq == f->seq &&
	    pair->replied_seq == f->copied) {
		c->aligned = 1;
		count(C_ALIGNED, 1);
	}
}

/* requests: bytes of requests were read (server) or sent (client). */
static __always_inline void requests(struct conn *c, struct feed *f)
{
	check_node(c);
	if (c->ignore)
		return;
	u64 last = c->last_in > c->last_out ? c->last_in : c->last_out;
	if (!c->aligned && f->now - last > RESYNC_PAUSE_NS)
		lose_order(c, C_GARBAGE); /* a message that began before this pause will not be completed */
	if (!c->aligned && !c->outstanding && !c->req.started) { /* a new beginning */
		c->exchanges++;
		if (c->role == CLIENT)
			align_by_server(c, f);
	}
	u32 len = f->len, seq = f->seq;
	bool known = c->tls;
	if (parse_syscall(c, f) || c->ignore)
		return;
	if (!known && c->tls) { /* the parser had taken it for garbage */
		if (!c->aligned)
			lose_order(c, C_GARBAGE);
		__builtin_memset(&c->req, 0, sizeof(c->req));
		c->aligned = c->strict = 1;
		f->len = len;
		f->seq = seq;
		f->pos = f->bad = 0;
		if (parse_syscall(c, f))
			return;
	}
	count(C_UNPARSED, 1);
	lose_order(c, C_GARBAGE);
	c->tls = NO_TLS; /* until a record begins with a read */
}

/* replies: bytes of replies were sent (server) or read (client). */
static __always_inline void replies(struct conn *c, struct feed *f)
{
	if (!c->outstanding && !c->aligned)
		return; /* to a request that was not seen */
	if (!parse_syscall(c, f)) {
		if (c->tls)
			__builtin_memset(&c->rep, 0, sizeof(c->rep)); /* a record will begin with another call */
		else
			lose_order(c, C_GARBAGE);
	}
	if (!c->tls)
		settle(c, f->now);
}

/* client_replies: a client read. A reply that came faster than any round trip answered an earlier request than the one
 * that was seen: the client does not wait for each reply, and the order is not known. */
static __always_inline void client_replies(struct conn *c, struct tcp_sock *tp, struct feed *f)
{
	if (!c->aligned && c->outstanding && c->exchanges &&
	    (f->now - c->in_flight_since) / 1000 < BPF_CORE_READ(tp, rtt_min.s[0].v))
		c->exchanges = 0;
	replies(c, f);
}

/* paused: a client had nothing in flight for ns between two calls. One that sends the next call at once depends on the
 * reply, or has callers that queue for the connection; not where these are known to be others. */
static __always_inline void paused(struct conn *c, u64 ns)
{
	c->idle_ns += ns;
	if (ns > c->idle_max)
		c->idle_max = ns;
	if (ns < c->last_ns / 4 && !c->other_caller)
		c->prompt++;
}

static __always_inline void status(struct conn *c, struct tcp_sock *tp, u64 now)
{
	if (now - c->published < status_ns)
		return;
	c->published = now;
	learn_observer(c);
	c->nagle = nagle_of(tp);
	report_conn(c, EV_STATUS, 0, now);
	c->idle_max = 0;
}

/* conn_here gives the connection of a socket that was just used. Where there is no room for it, calls are counted,
 * about one for each system call with requests: a server's reads, and a client's sends. */
static __always_inline struct conn *conn_here(struct sock *sk, u32 requests_of, u64 now)
{
	struct conn *c = conn_of(sk);
	if (c)
		return c;
	u32 role = role_of(sk);
	if (!role || sk->__sk_common.skc_state != TCP_ESTABLISHED)
		return NULL;
	return create(sk, role, false, now, role == requests_of ? C_UNFOLLOWED : C_MAX);
}

/* used_by notes which thread uses an end of a connection. */
static __always_inline void used_by(struct conn *c, struct thread *t)
{
	c->tid = t ? t->tid : shown_tid();
	c->tgid = t ? t->tgid : shown_tgid();
}

/* read_requests: a server read. */
static __always_inline void read_requests(struct conn *c, struct thread *t, struct feed *f)
{
	if (t && !reads_on(t, c, f->len)) {
		end_activity(t, f->now);
		t->number++;
		begin_activity(t, c, f->len, f->now);
	}
	u32 seq = f->seq + f->len;
	fingerprint(c, f->len);
	if (!same_as_before(c, f))
		requests(c, f);
	c->requested_seq = seq;
}

/* send_replies: a server sent. */
static __always_inline void send_replies(struct conn *c, struct thread *t, struct feed *f)
{
	if (t) {
		if (f->len >= BIG_SEND && !t->activity.conn)
			sends_to(t, c, f->len);
		end_activity(t, f->now);
		begin_activity(t, NULL, 0, f->now);
	}
	u32 first = c->head, waited = c->outstanding, seq = f->seq + f->len;
	if (f->now - c->last_out >= slow_ns && !c->rep.started) {
		c->silent_from = c->last_out;
		c->silent_to = f->now;
	}
	if (!small_reply(c, f) && !same_replies(c, f)) {
		if (!waited && !c->strict && c->aligned) /* it has no request: see small_reply */
			c->strict = 1;
		replies(c, f);
	}
	if (c->rep.started)
		c->partial = f->now;
	if (waited)
		publish(c, f, first, seq);
}

/* light_read: the client's end of a connection on this host read a reply. */
__noinline int light_read(struct conn *c, u32 slot, u32 seq, u64 now)
{
	if (!c)
		return 0;
	struct pair *pair = pair_of(c);
	if (!pair)
		return 0;
	pair->slot = slot;
	pair->read_seq = seq;
	pair->has_read = 1;
	if (pair->settled != ALL_ANSWERED_ALIGNED)
		return 0; /* more is to come, or the server's end has not published it yet, */
	in_order(&pair->settled);
	if (pair->replied_seq != seq || pair->arrived <= c->in_flight_since || pair->observer)
		return 0; /* or it is no call of a user */
	u64 ns = now - pair->arrived;
	if (c->in_flight_since && pair->arrived > c->last_in)
		paused(c, pair->arrived - c->last_in);
	c->last_ns = pair->flags & F_BLOCKING ? 0 : ns;
	c->in_flight_since = pair->arrived;
	c->in_flight_ns += c->last_ns;
	/* A client that polls may have read others before the server's end published them: they count with this one. */
	u32 calls = pair->calls - (u32)c->calls, no_calls = pair->no_calls - (u32)c->no_calls;
	if (!c->calls || calls > RING || no_calls >= calls) {
		calls = 1;
		no_calls = 0;
	}
	u64 unread = pair->unread_arrived;
	u32 old = unread ? pair->unread_calls - (u32)c->calls : 0;
	if (old >= calls || no_calls || pair->flags & (F_NO_TIME | F_BLOCKING))
		old = 0;
	c->calls = pair->read_calls = pair->calls;
	c->no_calls = pair->no_calls;
	if (!(pair->flags & F_BLOCKING))
		in_chain(c, pair->op, calls == 1 ? pair->arrived : c->chain.until - 1, now,
			 longest_pause(pair->flags));
	if (!old)
		pair->unread_arrived = 0;
	if (pair->flags & F_NO_TIME)
		return 0;
	c->print = calls == 1 ? pair->print : 0;
	c->replied_from = pair->arrived;
	c->replied_op = pair->op;
	count(C_CALLS_CLIENT, calls - no_calls);
	add_latency(pair->op, CLIENT, ns, calls - no_calls - old);
	if (old) {
		add_latency(pair->op, CLIENT, now - unread, old);
		if (now - unread >= slow_ns && may_report(now))
			report_light(c, slot, now, F_UNREAD);
		pair->unread_arrived = 0;
	}
	if (ns >= slow_ns) {
		if (may_report(now))
			report_light(c, slot, now, 0);
	} else if (sample(now)) {
		count(C_SAMPLED, 1);
		report_light(c, slot, now, F_SAMPLED);
	}
	return 0;
}

/* thread_here gives the clocks of the running thread: mostly it is the one that used the connection before. */
static __always_inline struct thread *thread_here(struct conn *c, u64 pid_tgid, u64 now, u32 *slot)
{
	*slot = c->slot;
	struct thread *t = thread_of(*slot);
	return t && t->pid == (u32)pid_tgid ? t : current_thread(now, slot, c->role == SERVER);
}

/* received: a thread read from a socket. */
static __always_inline int received(struct sock *sk, int ret, int flags)
{
	if (ret <= 0 || flags & MSG_PEEK)
		return 0;
	u32 end = left_out(sk);
	if (end == SERVER || (end && !both_here(sk)))
		count(C_LEFT_OUT, 1);
	if (end)
		return 0;
	u64 now = monotonic_ns();
	struct conn *c = conn_here(sk, SERVER, now);
	if (!c && !role_of(sk))
		read_peer(sk);
	if (!c || c->ignore)
		return 0;
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 0;
	u64 pid_tgid = bpf_get_current_pid_tgid();
	u32 slot;
	struct thread *t = thread_here(c, pid_tgid, now, &slot);
	used_by(c, t);
	if (t && c->role == CLIENT)
		acts(t, now);
	u32 seq = tp->copied_seq;
	if (go_hooked && c->role == CLIENT)
		go_takes(c);
	if (c->light) {
		takes(c, t, slot); /* its send is not hooked */
		light_read(c, slot, seq, now);
	} else {
		count(C_READS, 1);
		/* where the last bytes came with the FIN, that is counted, too (tcp_recvmsg_locked of net/ipv4/tcp.c) */
		if (c->in_known && c->peer_closed && c->in_seq + (u32)ret + 1 == seq)
			seq--;
		if (c->in_known && c->in_seq != seq - (u32)ret)
			lose_order(c, C_GAPS);
		c->in_known = 1;
		c->in_seq = seq;
		struct feed f = {
			.now = now,
			.len = ret,
			.seq = seq - ret,
			.slot = slot,
			.batch = NO_BATCH,
			.request = c->role == SERVER,
		};
		if (c->role == SERVER)
			read_requests(c, t, &f);
		else
			client_replies(c, tp, &f);
		read_up_to(c, seq);
	}
	c->slot = slot;
	if (go_hooked && c->role == CLIENT)
		go_read(c, now);
	read_reply(c, now);
	if (!no_data(c, c->role == SERVER ? &c->req : &c->rep))
		c->last_in = now;
	status(c, tp, now);
	return 0;
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(on_recv, struct sock *sk, int ret, int flags)
{
	if (is_dns(sk))
		return ret > 0 && !(flags & MSG_PEEK) ? report_dns(sk, 1) : 0;
	return received(sk, ret, flags);
}

/* sent: a thread wrote to a socket. */
static __always_inline int sent(struct sock *sk, int ret)
{
	if (ret <= 0 || left_out(sk))
		return 0;
	if (skip_light(sk)) {
		if (!watched_port(swap16(sk->__sk_common.skc_dport)))
			asks_peer(sk);
		else
			asks_redis();
		return 0;
	}
	u64 now = monotonic_ns();
	struct conn *c = conn_here(sk, CLIENT, now);
	if (!c && !role_of(sk))
		asks_peer(sk);
	if (!c || c->ignore || c->light)
		return 0;
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 0;
	u64 pid_tgid = bpf_get_current_pid_tgid();
	u32 slot;
	struct thread *t = thread_here(c, pid_tgid, now, &slot);
	struct feed f = {
		.now = now,
		.len = ret,
		.seq = tp->write_seq - ret,
		.slot = slot,
		.batch = NO_BATCH,
		.request = c->role == CLIENT,
		.copied = tp->copied_seq,
	};
	if (c->out_known && c->out_seq != f.seq)
		lose_order(c, C_GAPS);
	c->out_known = 1;
	c->out_seq = f.seq + ret;
	if (c->role == CLIENT) {
		asks_redis();
		used_by(c, t);
		if (go_hooked)
			go_takes(c);
		if (!c->outstanding && c->calls && c->last_in < now)
			paused(c, (c->send_start && c->send_start > c->last_in ? c->send_start : now) - c->last_in);
		if (!c->outstanding)
			takes(c, t, slot);
		fingerprint(c, ret);
		requests(c, &f);
	} else {
		u64 calls = c->calls;
		send_replies(c, t, &f);
		if (c->remote && (c->calls != calls || c->tls))
			await_ack(c, tp, now);
	}
	if (!no_data(c, c->role == CLIENT ? &c->req : &c->rep))
		c->last_out = now;
	c->send_start = 0;
	status(c, tp, now);
	return 0;
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(on_send, struct sock *sk, int ret, int flags)
{
	if (is_dns(sk))
		return ret > 0 ? report_dns(sk, 0) : 0;
	return sent(sk, ret);
}

/* sending: a send system call of a client begins. */
static __always_inline int sending(const struct sock *sk)
{
	if (skip_light(sk) || watched_port(sk->__sk_common.skc_num) || left_out(sk))
		return 0;
	struct conn *c = conn_of(sk);
	if (!c || c->ignore || c->send_start)
		return 0;
	c->send_start = monotonic_ns();
	return 0;
}

SEC("tp_btf/tcp_sendmsg_locked")
int BPF_PROG(on_sending, const struct sock *sk)
{
	return sending(sk);
}

#include "fallbacks.h"
