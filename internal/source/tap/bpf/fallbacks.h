/* Programs for kernels that lack a tracepoint of the others: the same bodies, at the function that has the tracepoint
 * in newer kernels. The loader chooses one program per hook (hooks.go). */
#ifndef SLOWPATH_FALLBACKS_H
#define SLOWPATH_FALLBACKS_H

/* Before 6.3, for sock_recv_length. The flags tell apart what peeks and what reads. */
SEC("fexit/tcp_recvmsg")
int BPF_PROG(on_recv_exit, struct sock *sk, void *msg, u64 len, int flags, int *addr_len, int ret)
{
	return received(sk, ret, flags);
}

/* Before 5.19 there was one more argument. */
SEC("fexit/tcp_recvmsg")
int BPF_PROG(on_recv_exit6, struct sock *sk, void *msg, u64 len, int nonblock, int flags, int *addr_len, int ret)
{
	return received(sk, ret, flags);
}

/* Before 6.3, for sock_send_length. */
SEC("fexit/tcp_sendmsg")
int BPF_PROG(on_send_exit, struct sock *sk, void *msg, u64 size, int ret)
{
	return sent(sk, ret);
}

/* Before 6.17, for the tracepoint tcp_sendmsg_locked. */
SEC("fentry/tcp_sendmsg")
int BPF_PROG(on_sending_in, struct sock *sk)
{
	return sending(sk);
}

/* Before 6.3 the tracepoint sk_data_ready was not in this function. Sockets of all families come here. */
SEC("fentry/sock_def_readable")
int BPF_PROG(on_ready_in, struct sock *sk)
{
	u16 family = sk->__sk_common.skc_family;
	return family == AF_INET || family == AF_INET6 ? ready(sk) : 0;
}

/* Before 5.18 the tracepoint did not have the state, which another CPU may change meanwhile: a thread that is woken at
 * the same time already has the state of a running one. */
SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch3, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	return switched(preempt, prev, next, prev->__state);
}

#endif
