/* Own declarations of the few kernel structures that the programs read. Offsets come from the BTF of the running kernel
 * (CO-RE), so only names and types matter here; bpf_core_field_exists tells whether a kernel has a field. */
#ifndef SLOWPATH_KERNEL_H
#define SLOWPATH_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;
typedef _Bool bool;
#define true 1
#define false 0
#define NULL ((void *)0)

/* include/uapi/linux/bpf.h */
enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_QUEUE = 22,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};
enum { BPF_F_NO_PREALLOC = 1, BPF_NOEXIST = 1, BPF_F_USER_STACK = 1 << 8 };

/* What a function that bpf_loop calls returns. */
enum { MORE = 0, STOP = 1 };

/* in_order keeps the accesses to memory before it before those after it, as another CPU sees them: between the two ends
 * of a connection, and between a thread's clocks and who reads them. x86 keeps stores in order, and loads in order, by
 * itself; only the compiler must be held. arm64 does not: there a BPF atomic that gives the old value is fully ordered
 * (Documentation/bpf/standardization/instruction-set.rst), and any address will do. */
#if defined(__TARGET_ARCH_x86)
#define in_order(word) barrier()
#else
#define in_order(word) ((void)__sync_val_compare_and_swap((word), 0, 0))
#endif
#define BPF_LOCAL_STORAGE_GET_F_CREATE 1
#define BPF_RB_NO_WAKEUP 1

#define CORE __attribute__((preserve_access_index))

/* include/uapi/linux/futex.h */
enum { FUTEX_WAIT = 0, FUTEX_WAIT_BITSET = 9, FUTEX_PRIVATE_FLAG = 128 };

struct unix_address;
struct unix_sock {
	struct unix_address *addr; /* NULL: it has no name */
} CORE;

struct sched_entity {
	struct cfs_rq *cfs_rq;
} CORE;

struct cfs_rq {
	int throttle_count;
	u64 throttled_clock_self_time; /* since 6.6: how long its tasks were throttled, up to the last release */
} CORE;

struct ns_common {
	unsigned int inum;
} CORE;

struct net {
	struct ns_common ns;
} CORE;

struct pid_namespace {
	struct ns_common ns;
} CORE;

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[1]; /* level + 1 */
} CORE;

struct mm_struct {
	unsigned long arg_start, arg_end;
} CORE;

struct super_block {
	u32 s_dev;
} CORE;

struct inode {
	u16 i_mode;
	struct super_block *i_sb;
} CORE;

struct qstr {
	const unsigned char *name;
} CORE;

struct dentry {
	struct qstr d_name;
} CORE;

struct path {
	struct dentry *dentry;
} CORE;

struct file {
	struct inode *f_inode;
	struct path f_path;
} CORE;

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
} CORE;

struct files_struct {
	struct fdtable *fdt;
} CORE;

struct task_struct {
	int pid;
	int tgid;
	struct pid *thread_pid;
	struct task_struct *group_leader;
	struct mm_struct *mm;
	struct files_struct *files;
	char comm[16];
	int on_rq;
	unsigned int __state;
	unsigned long jobctl;
	bool throttled; /* since 6.18: the task itself is throttled */
	struct sched_entity se;
} CORE;

struct in6_addr {
	union {
		u32 u6_addr32[4];
	} in6_u;
} CORE;

typedef struct {
	struct net *net;
} possible_net_t;

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
} CORE;

struct sock {
	struct sock_common __sk_common;
	int sk_err;
	u16 sk_type;
	u32 sk_max_ack_backlog;
} CORE;

struct minmax_sample {
	u32 t;
	u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_sock {
	u32 rcv_nxt;
	u32 copied_seq;
	u32 write_seq;
	u32 snd_una;
	u32 snd_nxt;
	u32 mss_cache;
	u32 total_retrans;
	u32 srtt_us;
	u32 rttvar_us;
	u32 dsack_dups; /* since 5.0 */
	u8 nonagle : 4;
	struct minmax rtt_min;
} CORE;

struct inet_connection_sock {
	u8 icsk_ca_state : 5;
	u8 icsk_backoff;
} CORE;

struct sk_buff {
	unsigned char *data;
} CORE;

struct iovec {
	void *iov_base;
	u64 iov_len;
};

struct user_msghdr {
	void *msg_name;
	int msg_namelen;
	struct iovec *msg_iov;
	u64 msg_iovlen;
};

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r14;
	unsigned long di;
	unsigned long si;
	unsigned long r10;
	unsigned long dx;
	unsigned long cx;
	unsigned long ax;
	unsigned long orig_ax;
} CORE;
#define REG_NR(r) ((int)(r)->orig_ax)
#define REG_ARG1(r) ((r)->di)
#define REG_SYS1(r) ((r)->di) /* of a system call */
#define REG_SYS4(r) ((r)->r10)
#define REG_ARG2(r) ((r)->si)
#define REG_ARG3(r) ((r)->dx)
#define REG_ARG4(r) ((r)->cx) /* of a function; a system call has its fourth argument elsewhere */
#define REG_RET(r) ((r)->ax)
#define REG_G(r) ((r)->r14) /* g of a goroutine, in code that the Go compiler made (ABIInternal), */
#define REG_GO1(r) ((r)->ax) /* and the first argument of a function there */
enum {
	NR_read = 0,
	NR_write = 1,
	NR_readv = 19,
	NR_writev = 20,
	NR_sendto = 44,
	NR_recvfrom = 45,
	NR_sendmsg = 46,
	NR_recvmsg = 47,
	NR_poll = 7,
	NR_select = 23,
	NR_nanosleep = 35,
	NR_connect = 42,
	NR_accept = 43,
	NR_futex = 202,
	NR_io_getevents = 208,
	NR_restart_syscall = 219,
	NR_clock_nanosleep = 230,
	NR_epoll_wait = 232,
	NR_pselect6 = 270,
	NR_ppoll = 271,
	NR_epoll_pwait = 281,
	NR_accept4 = 288,
};
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs {
	u64 regs[31];
	u64 orig_x0;
	s32 syscallno;
} CORE;
#define REG_NR(r) ((r)->syscallno)
#define REG_ARG1(r) ((r)->regs[0])
#define REG_SYS1(r) ((r)->orig_x0)
#define REG_SYS4(r) ((r)->regs[3])
#define REG_ARG2(r) ((r)->regs[1])
#define REG_ARG3(r) ((r)->regs[2])
#define REG_ARG4(r) ((r)->regs[3])
#define REG_RET(r) ((r)->regs[0])
#define REG_G(r) ((r)->regs[28])
#define REG_GO1(r) ((r)->regs[0])
enum {
	NR_read = 63,
	NR_write = 64,
	NR_readv = 65,
	NR_writev = 66,
	NR_sendto = 206,
	NR_recvfrom = 207,
	NR_sendmsg = 211,
	NR_recvmsg = 212,
	NR_poll = -101, /* there is none of those below -99 */
	NR_select = -102,
	NR_nanosleep = 101,
	NR_connect = 203,
	NR_accept = 202,
	NR_futex = 98,
	NR_io_getevents = 4,
	NR_clock_nanosleep = 115,
	NR_restart_syscall = 128,
	NR_epoll_wait = -100,
	NR_pselect6 = 72,
	NR_ppoll = 73,
	NR_epoll_pwait = 22,
	NR_accept4 = 242,
};
#else
#error "no declaration of pt_regs for this architecture"
#endif
enum { NR_io_uring_enter = 426, NR_epoll_pwait2 = 441 };
enum { S_IFMT = 0170000, S_IFSOCK = 0140000 };

/* Bits of nonagle, include/net/tcp.h. */
enum { TCP_NAGLE_OFF = 1 };

enum { AF_UNIX = 1, AF_INET = 2, AF_INET6 = 10 };
enum { SOCK_STREAM = 1 };
enum { MSG_PEEK = 2 };

/* include/net/tcp_states.h */
enum tcp_state : u8 {
	TCP_ESTABLISHED = 1,
	TCP_SYN_SENT,
	TCP_SYN_RECV,
	TCP_FIN_WAIT1,
	TCP_FIN_WAIT2,
	TCP_TIME_WAIT,
	TCP_CLOSE,
	TCP_CLOSE_WAIT,
	TCP_LAST_ACK,
	TCP_LISTEN,
	TCP_CLOSING,
	TCP_NEW_SYN_RECV,
};

/* States of the sender's congestion control, include/uapi/linux/tcp.h. */
enum tcp_ca_state : u8 { TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss };

enum { EPIPE = 32, ECONNRESET = 104 };

#endif
