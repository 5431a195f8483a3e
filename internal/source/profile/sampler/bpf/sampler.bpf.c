/* Samples of processes on the CPU: perf's cpu-clock runs this program on each CPU, some 99 times per second, on
 * whatever has that CPU. For each process that is to be sampled it reports the stack in the kernel, the registers of
 * user space, and the part of the user's stack above the stack pointer. User space finds the callers in it by
 * .eh_frame, since few C programs keep frame pointers. The chain of frame pointers is reported too, for programs that
 * have it and whose stacks are deeper than the copy. */
#include "../../../tap/bpf/kernel.h"
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

enum { TARGETS = 256, KERNEL_DEPTH = 64, USER_DEPTH = 127, REGS = 33, CHUNK = 512, STACK_BYTES = 48 * CHUNK };

enum counter {
	C_SEEN, /* samples, */
	C_LOST, /* those for which the ring buffer had no room, */
	C_BARE, /* and those of whose user stack nothing could be read */
	C_MAX,
};
const enum counter *keep_counter __attribute__((unused)); /* in the BTF, from which the Go side is made */

/* The registers by their numbers in DWARF (x86: 0-16, of which 7 is the stack pointer and 16 the program counter;
 * arm64: 0-30, 31, 32). */
struct sample {
	u64 time;
	u32 pid, tid;
	char comm[16];
	u32 kernel_bytes, user_bytes, stack_bytes, unused;
	u64 regs[REGS];
	u64 kernel[KERNEL_DEPTH];
	u64 user[USER_DEPTH];
	u8 stack[STACK_BYTES]; /* from the stack pointer upwards; the last field, stack_bytes long */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TARGETS);
	__type(key, u32);   /* process */
	__type(value, u32); /* its only thread that is sampled; 0: all are */
} targets SEC(".maps");

/* One per CPU; the loader sets the number. A sample is larger than an element of a per-CPU array may be (32 KiB), and
 * the interrupt of a clock is not interrupted by itself. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct sample);
} samples SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, C_MAX);
	__type(key, u32);
	__type(value, u64);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} events SEC(".maps");

static __always_inline void count(u32 which)
{
	u64 *c = bpf_map_lookup_elem(&counters, &which);
	if (c)
		*c += 1;
}

/* Variants of pt_regs with all registers that unwinding needs; kernel.h declares only those of a function's arguments.
 * The layout is that of the ABI of ptrace and signals, and does not change. */
#if defined(__TARGET_ARCH_x86)
struct saved {
	u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};
enum { SP = 7 };

static __always_inline void by_number(u64 *to, const struct saved *r)
{
	to[0] = r->ax, to[1] = r->dx, to[2] = r->cx, to[3] = r->bx;
	to[4] = r->si, to[5] = r->di, to[6] = r->bp, to[7] = r->sp;
	to[8] = r->r8, to[9] = r->r9, to[10] = r->r10, to[11] = r->r11;
	to[12] = r->r12, to[13] = r->r13, to[14] = r->r14, to[15] = r->r15;
	to[16] = r->ip;
}
#else
struct saved {
	u64 regs[31], sp, pc;
};
enum { SP = 31 };

static __always_inline void by_number(u64 *to, const struct saved *r)
{
	__builtin_memcpy(to, r, sizeof(*r));
}
#endif

/* copy_stack copies what can be read without a page fault, and gives how much. */
static __always_inline u32 copy_stack(struct sample *s, u64 sp)
{
	u32 got = 0;
	for (u32 i = 0; i < STACK_BYTES / CHUNK; i++) {
		if (bpf_probe_read_user(&s->stack[i * CHUNK], CHUNK, (void *)(sp + i * CHUNK)))
			break;
		got = (i + 1) * CHUNK;
	}
	return got;
}

SEC("perf_event")
int on_clock(void *ctx)
{
	u64 id = bpf_get_current_pid_tgid();
	u32 pid = id >> 32;
	u32 *only = bpf_map_lookup_elem(&targets, &pid);
	if (!only || (*only && *only != (u32)id))
		return 0;
	u32 cpu = bpf_get_smp_processor_id();
	struct sample *s = bpf_map_lookup_elem(&samples, &cpu);
	if (!s)
		return 0;
	count(C_SEEN);
	s->time = bpf_ktime_get_ns();
	s->pid = pid;
	s->tid = (u32)id;
	bpf_get_current_comm(s->comm, sizeof(s->comm));
	s->kernel_bytes = s->user_bytes = 0;
	if (!*only) { /* of a single thread, which is a server's, the copy below says all that is asked */
		long n = bpf_get_stack(ctx, s->kernel, sizeof(s->kernel), 0);
		s->kernel_bytes = n > 0 ? n : 0;
		n = bpf_get_stack(ctx, s->user, sizeof(s->user), BPF_F_USER_STACK);
		s->user_bytes = n > 0 ? n : 0;
	}
	struct saved saved;
	void *regs = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	u32 got = 0;
	if (bpf_probe_read_kernel(&saved, sizeof(saved), regs) == 0) {
		by_number(s->regs, &saved);
		got = copy_stack(s, s->regs[SP]);
	}
	if (!got)
		count(C_BARE);
	s->stack_bytes = got;
	u64 bytes = __builtin_offsetof(struct sample, stack) + got;
	if (bytes > sizeof(*s))
		return 0;
	/* The reader polls on a timer, and is not woken. */
	if (bpf_ringbuf_output(&events, s, bytes, BPF_RB_NO_WAKEUP))
		count(C_LOST);
	return 0;
}
