package series

// The main thread and the process of a server, and its connections.
var (
	MainRun                 = node("main.run_ns", Nanoseconds)
	MainDelay               = node("main.delay_ns", Nanoseconds) // in the run queue
	MainCPU                 = node("main.cpu", Count)            // the number of the CPU
	MainMinorFaults         = node("main.minflt", Count)
	MainMajorFaults         = node("main.majflt", Count)
	MainBlkioDelay          = node("main.blkio_delay_ns", Nanoseconds)
	MainVoluntarySwitches   = node("main.voluntary_switches", Count)
	MainInvoluntarySwitches = node("main.nonvoluntary_switches", Count)
	CPUsAllowed             = node("cpus_allowed", Count)

	ProcessCPU         = node("process.cpu_ns", Nanoseconds)
	ProcessThreads     = node("process.threads", Count)
	ProcessMinorFaults = node("process.minflt", Count)
	ProcessMajorFaults = node("process.majflt", Count)
	ProcessRSS         = node("process.rss_bytes", Bytes)
	ProcessSwap        = node("process.swap_bytes", Bytes)
	ProcessSmapsSwap   = node("process.smaps_swap_bytes", Bytes)
	ProcessAnon        = node("process.anon_bytes", Bytes)
	ProcessAnonHuge    = node("process.anon_huge_bytes", Bytes)
	Children           = node("children.count", Count)
	ChildrenCPU        = node("children.cpu_ns", Nanoseconds)
	IORead             = node("io.read_bytes", Bytes)
	IOWritten          = node("io.write_bytes", Bytes)
	IOCancelled        = node("io.cancelled", Bytes)
	FDs                = node("fd.count", Count)
	FDLimit            = node("fd.limit", Count)

	ListenQueue      = node("listen.queue", Count)
	ListenBacklog    = node("listen.backlog", Count)
	Somaxconn        = node("net.somaxconn", Count)
	TCPMaxSynBacklog = node("net.tcp_max_syn_backlog", Count)

	SockEstablished       = node("sock.established", Count)
	SockRetransmitting    = node("sock.retransmitting", Count)
	SockUnansweredResends = node("sock.unanswered_resends", Count)
	SockRecvQMax          = node("sock.recvq_max_bytes", Bytes)
	SockSendQMax          = node("sock.sendq_max_bytes", Bytes)
	SockRetransTotal      = node("sock.retrans_total", Count)
	SockUnackedMax        = node("sock.unacked_max", Count) // segments
	SockNotsentMax        = node("sock.notsent_max_bytes", Bytes)
	SockRwndLimitedMax    = node("sock.rwnd_limited_max_ns", Nanoseconds)
	SockRTTMin            = node("sock.rtt_min_ns", Nanoseconds)
	SockRTTMedian         = node("sock.rtt_median_ns", Nanoseconds)
	// What the server's connections had on their way to clients, more than two segments each: a receiver acknowledges
	// those at once. SockSentSegments counts all segments with data, SockLeastRTT is the median of the least round
	// trips (tcpi_min_rtt) of the connections that had some.
	SockOnTheWay      = node("sock.on_the_way", Count) // segments
	SockConnsOnTheWay = node("sock.conns_on_the_way", Count)
	SockSentSegments  = node("sock.sent_segments", Count)
	SockLeastRTT      = node("sock.least_rtt_ns", Nanoseconds)
	// CallersLeastRTT is the least round trip of the connections of this host's callers (tcpi_min_rtt).
	CallersLeastRTT = node("callers.least_rtt_ns", Nanoseconds)
	SockSampled     = node("sock.sampled", Count)
	SockTimeWait    = node("sock.time_wait", Count)
)

// Counters of /proc/net/snmp and netstat in the network namespace of a server.
var (
	DelayedACKs         = Net("DelayedACKs")
	InSegs              = Net("InSegs")
	ListenOverflows     = Net("ListenOverflows")
	OutSegs             = Net("OutSegs")
	RetransSegs         = Net("RetransSegs")
	TCPDSACKRecv        = Net("TCPDSACKRecv")
	TCPDSACKRecvSegs    = Net("TCPDSACKRecvSegs")
	TCPFastRetrans      = Net("TCPFastRetrans")
	TCPLossProbes       = Net("TCPLossProbes")
	TCPSlowStartRetrans = Net("TCPSlowStartRetrans")
	TCPSynRetrans       = Net("TCPSynRetrans")
	TCPTimeouts         = Net("TCPTimeouts")
	TCPToZeroWindowAdv  = Net("TCPToZeroWindowAdv")
)

// QueueBacklogPrefix precedes the names of a network device and its queueing discipline, "eth0 tbf", in the name of
// QueueBacklog.
const QueueBacklogPrefix = "queue."

// QueueBacklog is what waits to be sent in a queueing discipline.
func QueueBacklog(of string) Name { return node(QueueBacklogPrefix+of+".backlog_bytes", Bytes) }

// Net is such a counter, under the kernel's own name.
func Net(name string) Name { return node("net."+name, Count) }

// ThreadPrefix precedes the name of a thread in the names of ThreadRun and ThreadDelay.
const ThreadPrefix = "thread."

// ThreadRun is the CPU time of all threads of a server with a name, but for the main thread.
func ThreadRun(name string) Name { return node(ThreadPrefix+name+".run_ns", Nanoseconds) }

// ThreadDelay is their time in the run queue.
func ThreadDelay(name string) Name { return node(ThreadPrefix+name+".delay_ns", Nanoseconds) }

// The cgroups that a server, or a client, runs in.
var (
	CgroupQuota       = cgroup("cpu.quota_us", Microseconds) // -1: none
	CgroupPeriod      = cgroup("cpu.period_us", Microseconds)
	CgroupBurst       = cgroup("cpu.burst_us", Microseconds)
	CgroupPeriods     = cgroup("cpu.nr_periods", Count)
	CgroupThrottled   = cgroup("cpu.nr_throttled", Count) // periods
	CgroupThrottledNs = cgroup("cpu.throttled_ns", Nanoseconds)
	CgroupUsage       = cgroup("cpu.usage_ns", Nanoseconds)
	CgroupMemory      = cgroup("memory.usage_bytes", Bytes)
	CgroupMemoryLimit = cgroup("memory.limit_bytes", Bytes) // -1: none, as of the next
	CgroupMemoryHigh  = cgroup("memory.high_bytes", Bytes)
	CgroupMemoryFails = cgroup("memory.failcnt", Count)
)

// CgroupMemoryControl is a counter of memory.oom_control (cgroup v1): "oom_kill".
func CgroupMemoryControl(name string) Name { return cgroup("memory."+name, Count) }

// CgroupMemoryEvents is a counter of memory.events (cgroup v2): how often its usage met a limit, or "oom_kill".
func CgroupMemoryEvents(name string) Name { return cgroup("memory.events."+name, Count) }

// CgroupIOLimit is a limit of bytes or operations per second: "read_bps".
func CgroupIOLimit(name string) Name { return cgroup("io."+name+"_limit", Count) }

// CgroupPressure is for how long tasks of a cgroup waited for a resource (PSI): some of them, or all ("full").
func CgroupPressure(name, kind string) Name { return cgroup("psi."+name+"."+kind+"_us", Microseconds) }

// The whole host.
var (
	MachineCPUs        = machine("cpu.count", Count)
	MachineBusy        = machine("cpu.busy_ns", Nanoseconds)
	MachineSteal       = machine("cpu.steal_ns", Nanoseconds)
	MachineSoftirq     = machine("cpu.softirq_ns", Nanoseconds)
	MachineLoad        = machine("load1", Count)
	MachineMemory      = machine("mem.total_bytes", Bytes)
	MachineAvailable   = machine("mem.available_bytes", Bytes)
	MachineDirty       = machine("mem.dirty_bytes", Bytes)
	MachineWriteback   = machine("mem.writeback_bytes", Bytes)
	MachineSwap        = machine("swap.total_bytes", Bytes)
	MachineSwapUsed    = machine("swap.used_bytes", Bytes)
	MachineOvercommit  = machine("vm.overcommit_memory", Count)
	MachineSwappiness  = machine("vm.swappiness", Count)
	MachineQuotaSlices = machine("sched_cfs_bandwidth_slice_us", Microseconds)
)

// CPUBusy is the time in which one CPU was busy.
func CPUBusy(n string) Name { return machine("cpu."+n+".busy_ns", Nanoseconds) }

// CPUSteal is the time that the hypervisor ran others on it.
func CPUSteal(n string) Name { return machine("cpu."+n+".steal_ns", Nanoseconds) }

// CPUSoftirq is its time in softirqs.
func CPUSoftirq(n string) Name { return machine("cpu."+n+".softirq_ns", Nanoseconds) }

// MachinePressure is for how long tasks of the host waited for a resource, as CgroupPressure.
func MachinePressure(name, kind string) Name {
	return machine("psi."+name+"."+kind+"_us", Microseconds)
}

// Processes of this host that call a server.
var (
	ClientCPU          = process("cpu_ns", Nanoseconds)
	ClientDelay        = process("delay_ns", Nanoseconds) // in the run queue
	ClientThreads      = process("threads", Count)
	ClientConnections  = process("connections", Count)
	ClientBusiestRun   = process("busiest.run_share", Share)
	ClientBusiestDelay = process("busiest.delay_share", Share)
	ClientRSS          = process("rss_bytes", Bytes)
	ClientSwap         = process("swap_bytes", Bytes)
	ClientMinorFaults  = process("minflt", Count)
	ClientMajorFaults  = process("majflt", Count)
	ClientIORead       = process("io.read_bytes", Bytes)
	ClientIOWritten    = process("io.write_bytes", Bytes)
	ClientFDs          = process("fd.count", Count)
	ClientFDLimit      = process("fd.limit", Count)
)

// Connections of this host that wait for a reply.
var (
	ConnWaiting = Name{SourceHost, ConnPrefix, "waiting_ns", Nanoseconds} // since it last sent; 0: no longer
	ConnResends = Name{SourceHost, ConnPrefix, "waiting_resends", Count}
)

// What slowpath itself takes of this host.
var (
	OwnCPU    = self("process.cpu_ns", Nanoseconds)
	HostCPU   = self("host.cpu_ns", Nanoseconds) // of the host source
	HostReads = self("host.reads", Count)
	HostLate  = self("host.late_ns", Nanoseconds)
)

func node(name string, unit Unit) Name    { return Name{SourceHost, "", name, unit} }
func cgroup(name string, unit Unit) Name  { return Name{SourceHost, CgroupPrefix, name, unit} }
func machine(name string, unit Unit) Name { return Name{SourceHost, SubjectMachine, name, unit} }
func process(name string, unit Unit) Name { return Name{SourceHost, ProcessPrefix, name, unit} }
func self(name string, unit Unit) Name    { return Name{SourceHost, SubjectSelf, name, unit} }
