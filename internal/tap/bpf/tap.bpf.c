//go:build ignore
/* slowpath's kernel programs: every Redis call on this host, seen from its sockets and from the scheduler, without touching client or
 * server. Read types.h first. */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "types.h"
#include "maps.h"
#include "clocks.h"
#include "conns.h"
#include "items.h"
#include "calls.h"
#include "resp.h"

/* so that the types of events are in the BTF of the object, from which the Go side is made */
#define KEEP(T) const struct T *keep_##T __attribute__((unused))
KEEP(call_event);
KEEP(item_event);
KEEP(offcpu_event);
KEEP(conn_event);
KEEP(retrans_event);

char _license[] SEC("license") = "Dual MIT/GPL";

/* user_buffer gives the memory of the system call that is under way: one buffer, or a list of them. */
static __always_inline bool user_buffer(u64 *buf, const struct iovec **iov, u32 *many)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
	*buf = 0;
	*iov = NULL;
	switch (REG_NR(regs)) {
	case NR_read:
	case NR_write:
	case NR_recvfrom:
	case NR_sendto:
		*buf = REG_ARG2(regs);
		return true;
	case NR_readv:
	case NR_writev:
		*iov = (const struct iovec *)REG_ARG2(regs);
		*many = REG_ARG3(regs);
		return true;
	case NR_recvmsg:
	case NR_sendmsg: {
		struct user_msghdr h;
		if (bpf_probe_read_user(&h, sizeof(h), (void *)REG_ARG2(regs)))
			return false;
		*iov = h.msg_iov;
		*many = h.msg_iovlen;
		return true;
	}
	}
	return false;
}

struct vectors {
	struct parse *q;
	const struct iovec *iov;
	u32 many, rest;
};

static long vector(u32 n, struct vectors *v)
{
	struct iovec one;
	struct feed *f = v->q->f;
	if (n >= v->many || !v->rest || f->bad)
		return STOP;
	if (bpf_probe_read_user(&one, sizeof(one), v->iov + n)) {
		f->bad = 1;
		return STOP;
	}
	f->buf = (u64)one.iov_base;
	f->pos = 0;
	f->len = one.iov_len < v->rest ? one.iov_len : v->rest;
	v->rest -= f->len;
	bpf_loop(1 << 16, window, v->q, 0);
	return MORE;
}

/* look parses the bytes of a system call. It gives 0 where the order of calls is lost. */
__noinline int look(struct conn *c, struct feed *f)
{
	if (!c || !f)
		return 0;
	u64 buf;
	const struct iovec *iov;
	u32 many = 0, zero = 0, len = f->len;
	struct parse q = {.c = c, .f = f, .w = bpf_map_lookup_elem(&scratches, &zero)};
	if (!q.w)
		return 0;
	if (!user_buffer(&buf, &iov, &many)) {
		count(C_NO_BUFFER, 1);
		return 0;
	}
	if (buf) {
		f->buf = buf;
		bpf_loop(1 << 16, window, &q, 0);
	} else {
		struct vectors v = {.q = &q, .iov = iov, .many = many, .rest = len};
		bpf_loop(1024, vector, &v, 0);
		if (v.rest) {
			count(C_IOVECS, 1);
			return 0;
		}
	}
	return !f->bad;
}

/* settle decides whether the order of calls is known, once everything that was asked has been answered. */
static __always_inline void settle(struct conn *c, u64 now)
{
	if (c->aligned || c->outstanding || c->rep.started || c->req.started)
		return;
	if (c->role == SERVER || c->exchanges >= 8) {
		c->aligned = 1;
		count(C_ALIGNED, 1);
	}
}

/* requests: bytes of requests were read (server) or sent (client). */
static __always_inline void requests(struct conn *c, u32 slot, u32 len, u32 seq, u64 now)
{
	if (!c->aligned && !c->outstanding) { /* a new beginning */
		if (c->req.started || c->rep.started)
			lose(c, C_GARBAGE);
		c->exchanges++;
	}
	struct feed f = {.now = now, .len = len, .seq = seq - len, .slot = slot, .batch = BATCHES, .request = 1};
	if (!look(c, &f))
		lose(c, C_GARBAGE);
}

/* replies: bytes of replies were sent (server) or read (client). */
static __always_inline void replies(struct conn *c, u32 slot, u32 len, u32 seq, u64 now)
{
	if (!c->outstanding && !c->aligned)
		return; /* to something that was asked before we came */
	struct feed f = {.now = now, .len = len, .seq = seq - len, .slot = slot, .batch = BATCHES, .request = 0};
	if (!look(c, &f))
		lose(c, C_GARBAGE);
	settle(c, now);
}

static __always_inline void status(struct conn *c, u64 now)
{
	if (now - c->published < status_ns)
		return;
	c->published = now;
	report_conn(c, EV_STATUS, 0, now);
}

static __always_inline struct conn *conn_here(struct sock *sk, u64 now)
{
	struct conn *c = conn_of(sk);
	if (c)
		return c;
	u32 role = role_of(sk);
	if (!role || sk->__sk_common.skc_state != TCP_ESTABLISHED_)
		return NULL;
	return create(sk, role, false, now);
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(on_recv, struct sock *sk, int ret, int flags)
{
	if (ret <= 0 || flags & MSG_PEEK_)
		return 0;
	u64 now = wall();
	struct conn *c = conn_here(sk, now);
	if (!c || c->ignore)
		return 0;
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 0;
	u32 slot = THREADS;
	struct thread *t = current_thread(now, &slot, c->role == SERVER);
	u64 who = bpf_get_current_pid_tgid();
	if (c->role == CLIENT && who >> 32 == own_tgid) {
		c->ignore = 1;
		return 0;
	}
	c->tid = who;
	c->tgid = who >> 32;
	u32 seq = tp->copied_seq;
	if (c->role == SERVER) {
		if (t) {
			struct clocks clk = {};
			snapshot(slot, now, &clk);
			end_item(t, now, &clk);
			t->number++;
			begin_item(t, c, ret, 0, now, &clk);
		}
		requests(c, slot, ret, seq, now);
		c->asked = seq;
	} else {
		replies(c, slot, ret, seq, now);
	}
	c->slot = slot;
	read_up_to(c, seq);
	c->last_in = now;
	status(c, now);
	return 0;
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(on_send, struct sock *sk, int ret, int flags)
{
	if (ret <= 0)
		return 0;
	u64 now = wall();
	struct conn *c = conn_here(sk, now);
	if (!c || c->ignore)
		return 0;
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 0;
	u32 slot = THREADS;
	struct thread *t = current_thread(now, &slot, c->role == SERVER);
	u64 who = bpf_get_current_pid_tgid();
	if (c->role == CLIENT) {
		if (who >> 32 == own_tgid) {
			c->ignore = 1;
			return 0;
		}
		c->tid = who;
		c->tgid = who >> 32;
		if (!c->outstanding && c->calls && c->last_in < now)
			c->idle_ns += (c->send_start ? c->send_start : now) - c->last_in;
		if (c->slot >= THREADS)
			c->slot = slot; /* until it reads: it will probably be the same thread */
		requests(c, slot, ret, tp->write_seq, now);
	} else {
		if (t) {
			struct clocks clk = {};
			snapshot(slot, now, &clk);
			end_item(t, now, &clk);
			begin_item(t, NULL, 0, 0, now, &clk);
		}
		replies(c, slot, ret, tp->write_seq, now);
	}
	c->last_out = now;
	c->send_start = 0;
	status(c, now);
	return 0;
}

/* on_sending: a send system call begins. */
SEC("tp_btf/tcp_sendmsg_locked")
int BPF_PROG(on_sending, const struct sock *sk)
{
	struct conn *c = conn_of(sk);
	if (!c || c->ignore || c->send_start)
		return 0;
	u64 now = wall();
	c->send_start = now;
	if (c->role != SERVER)
		return 0;
	u32 slot;
	struct thread *t = watched(bpf_get_current_task_btf(), &slot);
	if (!t)
		return 0;
	struct clocks clk = {};
	snapshot(slot, now, &clk);
	end_item(t, now, &clk);
	begin_item(t, c, 0, 1, now, &clk);
	publish(c, slot, now);
	return 0;
}
