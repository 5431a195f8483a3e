/* Numbers of processes and threads as slowpath's own /proc has them. The kernel's helpers give those of the root
 * namespace, which a container with a namespace of its own does not have. */
#ifndef SLOWPATH_PIDS_H
#define SLOWPATH_PIDS_H

/* A namespace that deep is not searched for (the kernel has MAX_PID_NS_LEVEL 32). */
enum { PID_LEVELS = 8 };

/* OUTSIDE is a task that slowpath's namespace does not have. */
enum { OUTSIDE = 0 };

/* number_in_own gives a task's number in slowpath's namespace. */
static __noinline u32 number_in_own(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	u32 level = BPF_CORE_READ(pid, level);
	const char *numbers = (const char *)pid + bpf_core_field_offset(pid->numbers);
	for (u32 i = 0; i < PID_LEVELS && i <= level; i++) {
		struct upid one;
		if (bpf_probe_read_kernel(&one, sizeof(one), numbers + i * sizeof(one)))
			return OUTSIDE;
		if (BPF_CORE_READ(one.ns, ns.inum) == pid_namespace)
			return one.nr;
	}
	return OUTSIDE;
}

/* shown_tid_of and shown_tgid_of give the number of a task, and of its process. */
static __always_inline u32 shown_tid_of(struct task_struct *task)
{
	return pid_namespace ? number_in_own(task) : BPF_CORE_READ(task, pid);
}

static __always_inline u32 shown_tgid_of(struct task_struct *task)
{
	return pid_namespace ? number_in_own(BPF_CORE_READ(task, group_leader)) : BPF_CORE_READ(task, tgid);
}

/* The same of the running task. */
static __always_inline u32 shown_tid(void)
{
	return pid_namespace ? number_in_own(bpf_get_current_task_btf()) : (u32)bpf_get_current_pid_tgid();
}

static __always_inline u32 shown_tgid(void)
{
	return pid_namespace ? shown_tgid_of(bpf_get_current_task_btf()) : bpf_get_current_pid_tgid() >> 32;
}

#endif
