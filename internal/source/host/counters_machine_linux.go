package host

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"

	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// machine samples the host as a whole.
func (w *watch) machine() {
	for _, resource := range []string{"cpu", "io", "memory"} {
		if b, ok := w.read("/proc/pressure/" + resource); ok {
			w.pressure(series.MachinePressure, "", resource, b)
		}
	}
	w.cpus()
	fs, err := procfs.NewFS(w.FS.Path("/proc"))
	if err != nil {
		return
	}
	w.reads.Add(2)
	if load, err := fs.LoadAvg(); err == nil {
		w.sample(series.MachineLoad, load.Load1)
	}
	if m, err := fs.Meminfo(); err == nil {
		w.memory(m)
	}
}

// machineSettings samples settings that seldom change.
func (w *watch) machineSettings() {
	thp := readLine(w.FS, "/sys/kernel/mm/transparent_hugepage/enabled")
	if thp != w.thp {
		w.thp = thp
		w.snapshot(recording.SubjectMachine, "thp", thp)
	}
	w.sampleFile(series.MachineOvercommit, "", "/proc/sys/vm/overcommit_memory")
	w.sampleFile(series.MachineSwappiness, "", "/proc/sys/vm/swappiness")
	w.sampleFile(series.MachineQuotaSlices, "", "/proc/sys/kernel/sched_cfs_bandwidth_slice_us")
	if p, err := w.procfs(); err == nil {
		if limits, err := p.Limits(); err == nil {
			w.sample(series.FDLimit, float64(limits.OpenFiles))
		}
	}
}

func (w *watch) pressure(of func(name, kind string) series.Name, which, resource string, b []byte) {
	pressureTotals(b, func(kind string, us int64) {
		w.sampleOf(of(resource, kind), which, float64(us))
	})
}

// cpus samples the CPU times of the machine, and softirq and steal of the CPU on which the main thread last ran.
func (w *watch) cpus() {
	b, ok := w.read("/proc/stat")
	if !ok {
		return
	}
	count := 0
	parseCPUTimes(b, func(cpu int, t cpuTimes) {
		if cpu < 0 {
			w.sample(series.MachineBusy, float64(t.busy))
			w.sample(series.MachineSteal, float64(t.steal))
			w.sample(series.MachineSoftirq, float64(t.softirq))
			return
		}
		count++
		if cpu == w.mainCPU || len(w.allowed) <= 8 && w.allowed[cpu] {
			n := strconv.Itoa(cpu)
			w.sample(series.CPUBusy(n), float64(t.busy))
			w.sample(series.CPUSoftirq(n), float64(t.softirq))
			w.sample(series.CPUSteal(n), float64(t.steal))
		}
	})
	w.cpuCount = count
	w.sample(series.MachineCPUs, float64(count))
}

// memory samples /proc/meminfo.
func (w *watch) memory(m procfs.Meminfo) {
	for _, f := range []struct {
		of series.Name
		v  *uint64
	}{
		{series.MachineMemory, m.MemTotalBytes},
		{series.MachineAvailable, m.MemAvailableBytes},
		{series.MachineDirty, m.DirtyBytes},
		{series.MachineWriteback, m.WritebackBytes},
		{series.MachineSwap, m.SwapTotalBytes},
	} {
		if f.v != nil {
			w.sample(f.of, float64(*f.v))
		}
	}
	if m.SwapTotalBytes != nil && m.SwapFreeBytes != nil {
		w.sample(series.MachineSwapUsed, float64(*m.SwapTotalBytes-*m.SwapFreeBytes))
	}
}

// netSysctls samples settings of the server's network namespace.
func (w *watch) netSysctls() {
	for of, file := range map[series.Name]string{
		series.Somaxconn:        "core/somaxconn",
		series.TCPMaxSynBacklog: "ipv4/tcp_max_syn_backlog",
	} {
		b, err := w.FS.ReadInNetNS(w.Process.PID, "/proc/sys/net/"+file)
		if err != nil {
			w.blind("network settings of the server's namespace", err.Error(), "run as root or with CAP_SYS_ADMIN")
			continue
		}
		w.sampleText(of, w.Node, strings.TrimSpace(string(b)))
	}
}

// netCounters are the counters that are recorded, by group of /proc/PID/net/netstat and snmp.
var netCounters = map[string]bool{
	"TcpExt ListenOverflows": true, "TcpExt ListenDrops": true, "TcpExt TCPSynRetrans": true,
	"TcpExt TCPTimeouts":   true,
	"TcpExt TCPLossProbes": true, "TcpExt TCPLostRetransmit": true, "TcpExt TCPReqQFullDrop": true,
	"TcpExt TCPReqQFullDoCookies": true,
	"TcpExt TCPAbortOnTimeout":    true, "TcpExt TCPBacklogDrop": true, "TcpExt TCPRcvQDrop": true,
	"TcpExt TCPZeroWindowDrop": true,
	"TcpExt PruneCalled":       true, "TcpExt TCPSpuriousRTOs": true, "TcpExt TCPFastRetrans": true,
	"TcpExt TCPSlowStartRetrans": true,
	"TcpExt DelayedACKs":         true, "TcpExt TCPOFOQueue": true, "TcpExt TCPMemoryPressures": true,
	"TcpExt TCPToZeroWindowAdv":  true,
	"TcpExt TCPTimeWaitOverflow": true, "TcpExt TCPDSACKRecv": true, "TcpExt TCPDSACKRecvSegs": true,
	"TcpExt TCPLossProbeRecovery": true,
	"Tcp RetransSegs":             true, "Tcp OutSegs": true, "Tcp InSegs": true, "Tcp InErrs": true,
	"Tcp OutRsts": true, "Tcp PassiveOpens": true,
	"Tcp ActiveOpens": true, "Tcp AttemptFails": true, "Tcp EstabResets": true,
}

// network samples the TCP counters of the server's own network namespace.
func (w *watch) network() {
	for _, file := range []string{"netstat", "snmp"} {
		b, ok := w.read(w.proc("net/" + file))
		if _, runs := w.read(w.proc("stat")); !ok && runs {
			w.blind("TCP counters of the server's namespace", fmt.Sprintf("/proc/%d/net/%s may not be read",
				w.Process.PID, file), "run as root")
		}
		if !ok {
			continue
		}
		eachNetCounter(b, func(group, name string, v int64) {
			if netCounters[group+" "+name] {
				w.sample(series.Net(name), float64(v))
			}
		})
	}
}
