/* Acknowledgements: when the kernel of a client at another address had the last byte of a reply. The process of the
 * client has no part in that: what is late is the path, the host of the client, or a window that the client keeps
 * closed. A client on this host is observed at its own end. */
#ifndef SLOWPATH_ACKNOWLEDGEMENTS_H
#define SLOWPATH_ACKNOWLEDGEMENTS_H

/* A receiver may delay the acknowledgement of a single segment by so many nanoseconds (include/net/tcp.h,
 * TCP_DELACK_MAX). */
enum { DELAYED_ACK_MAX_NS = 200000000 };

enum { TCP_ACK_FLAG = 0x10 };

/* segment is the part of a TCP header from the acknowledgement number to the window, in the order of the network. */
struct segment {
	u32 ack;
	u8 offset, flags;
	u16 window;
};

/* covers says that a TCP sequence number is not before another. */
static __always_inline bool covers(u32 a, u32 b)
{
	return (s32)(a - b) >= 0;
}

/* await_ack notes the end of what a server has sent. With too many replies on their way at once, those between the
 * first and the last are left out. The acknowledgement may be processed on another CPU at the same time: of the two
 * exchanges with c->acked and c->sent_tail, whoever is second sees what the other wrote. */
static __always_inline void await_ack(struct conn *c, struct tcp_sock *tp, u64 now)
{
	u32 tail = c->sent_tail;
	if (!c->acks_seen)
		return; /* on_ack is attached later, or came with the request of this connection */
	if (tail - c->sent_head >= SENTS)
		tail--;
	struct sent *s = &c->sent[tail & (SENTS - 1)];
	__sync_lock_test_and_set(&s->ns, 0);
	s->seq = tp->write_seq;
	s->unacked = s->seq - tp->snd_una;
	s->retransmitted = tp->total_retrans;
	s->slow = c->last_ns >= slow_ns;
	s->zero_window = c->zero_window && c->zero_window + c->last_ns >= now;
	s->nearly = 0;
	__sync_lock_test_and_set(&s->ns, now);
	__sync_lock_test_and_set(&c->sent_tail, tail + 1);
	if (covers(c->acked, s->seq))
		s->ns = 0;
}

/* acknowledged reports a reply whose acknowledgement was late by more than the path's least round trip, or whose call
 * was slow. before is what was acknowledged until now. Half of the tokens are left to calls. */
static __noinline int acknowledged(struct conn *c, struct sent *s, struct tcp_sock *tp, u32 before, u64 now)
{
	if (!c || !s || !tp || !s->ns || now < s->ns)
		return 0;
	u64 all = now - s->ns, sure = all;
	if (s->seq - before <= tp->mss_cache) { /* the last segment alone: its acknowledgement may have been delayed */
		u64 nearly = s->nearly > s->ns ? s->nearly - s->ns : 0;
		sure = all > DELAYED_ACK_MAX_NS ? all - DELAYED_ACK_MAX_NS : 0;
		if (sure < nearly)
			sure = nearly;
	}
	u32 least = BPF_CORE_READ(tp, rtt_min.s[0].v);
	if (least == ~0u)
		least = 0;
	bool late = sure >= slow_ns + (u64)least * 1000;
	if (late)
		count(C_LATE_ACKS, 1);
	if ((!late && !s->slow) || !take_token(now, slow_burst / 2))
		return 0;
	struct acked_event *e = reserve(struct acked_event);
	if (!e)
		return 0;
	e->type = EV_ACKED;
	e->zero_window = s->zero_window || c->zero_window >= s->ns;
	e->unused = 0;
	e->tgid = c->tgid;
	fill_addr(&e->addr, c);
	e->conn = c->cookie;
	e->from = s->ns;
	e->to = now;
	e->sure = sure;
	e->unacked = s->unacked;
	e->retransmitted = tp->total_retrans - s->retransmitted;
	e->rtt_min_us = least;
	e->unused2 = 0;
	submit(e);
	return 0;
}

/* on_ack: a segment came to an open connection; the kernel has not processed it yet (tcp_rcv_established). */
SEC("tp_btf/tcp_probe")
int BPF_PROG(on_ack, struct sock *sk, const struct sk_buff *skb)
{
	if (both_here(sk) || !watched_port(sk->__sk_common.skc_num) || left_out(sk))
		return 0;
	struct conn *c = conn_of(sk);
	struct segment h;
	if (!c || !c->remote || c->ignore || bpf_probe_read_kernel(&h, sizeof(h), skb->data + 8) ||
	    !(h.flags & TCP_ACK_FLAG))
		return 0;
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 0;
	u32 ack = __builtin_bswap32(h.ack), before = tp->snd_una;
	if (!covers(tp->snd_nxt, ack) || !covers(ack, before))
		return 0; /* of something that was never sent, or an old one */
	__sync_lock_test_and_set(&c->acked, ack);
	c->acks_seen = 1;
	u32 head = c->sent_head, tail = c->sent_tail;
	if (head == tail && h.window)
		return 0;
	u64 now = monotonic_ns();
	if (!h.window)
		c->zero_window = now;
	for (int n = 0; n < SENTS && head != tail; n++, head++) {
		struct sent *s = &c->sent[head & (SENTS - 1)];
		if (!covers(ack, s->seq)) {
			if (!s->nearly && covers(ack + tp->mss_cache, s->seq))
				s->nearly = now;
			break;
		}
		acknowledged(c, s, tp, before, now);
	}
	c->sent_head = head;
	return 0;
}

#endif
