/* Programs for kernels that lack a tracepoint of the others: the same bodies, at the function that the tracepoint stands in. The loader takes
 * one program per hook (ladder.go). */
#ifndef SLOWPATH_OLDER_H
#define SLOWPATH_OLDER_H

/* Before 6.3, sock_recv_length. What peeks is told from what reads by the flags. */
SEC("fexit/tcp_recvmsg")
int BPF_PROG(on_recv_exit, struct sock *sk, void *msg, u64 len, int flags, int *addr_len, int ret)
{
	return received(sk, ret, flags);
}

/* Before 5.19 there was an argument more. */
SEC("fexit/tcp_recvmsg")
int BPF_PROG(on_recv_exit6, struct sock *sk, void *msg, u64 len, int nonblock, int flags, int *addr_len, int ret)
{
	return received(sk, ret, flags);
}

/* Before 6.3, sock_send_length. */
SEC("fexit/tcp_sendmsg")
int BPF_PROG(on_send_exit, struct sock *sk, void *msg, u64 size, int ret)
{
	return sent(sk, ret);
}

/* Before 6.17, the tracepoint tcp_sendmsg_locked. */
SEC("fentry/tcp_sendmsg")
int BPF_PROG(on_sending_in, struct sock *sk)
{
	return sending(sk);
}

/* Before 6.3, the tracepoint sk_data_ready stood not yet in this function. Sockets of all families come here. */
SEC("fentry/sock_def_readable")
int BPF_PROG(on_ready_in, struct sock *sk)
{
	u16 family = sk->__sk_common.skc_family;
	return family == AF_INET_ || family == AF_INET6_ ? ready(sk) : 0;
}

/* Before 5.18 the tracepoint did not tell the state, which another CPU may change meanwhile: that of a thread that is woken at this very moment
 * is the one of running. */
SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch3, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	return switched(preempt, prev, next, prev->__state);
}

#endif
