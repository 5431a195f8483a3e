/* What processes run: the beginning of their arguments, when they first connect to a server. A process that ends at
 * once, such as a redis-cli of a script, is gone before /proc is read. */
#ifndef SLOWPATH_PROGRAMS_H
#define SLOWPATH_PROGRAMS_H

/* tell_program reports what the running process runs, once for each of its address spaces: exec makes a new one. */
static __noinline int tell_program(u32 tgid)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct mm_struct *mm = BPF_CORE_READ(task, mm);
	u64 id = (u64)mm;
	u64 *told = bpf_map_lookup_elem(&told_programs, &tgid);
	if (!mm || !tgid || (told && *told == id))
		return 0;
	bpf_map_update_elem(&told_programs, &tgid, &id, 0);
	struct program_event *e = reserve(struct program_event);
	if (!e)
		return 0;
	e->type = EV_PROGRAM;
	e->tgid = tgid;
	e->uid = bpf_get_current_uid_gid();
	bpf_get_current_comm(e->comm, 16);
	__builtin_memset(e->args, 0, sizeof(e->args));
	u64 from = BPF_CORE_READ(mm, arg_start), size = BPF_CORE_READ(mm, arg_end) - from;
	if (size > sizeof(e->args) - 1)
		size = sizeof(e->args) - 1;
	bpf_probe_read_user(e->args, size, (void *)from); /* zeros, where the page is not there */
	submit(e);
	return 0;
}

#endif
