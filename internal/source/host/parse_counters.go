package host

import (
	"bytes"
	"strconv"
)

// clockTickNs is the unit of CPU times in /proc: ticks of 10 ms on every architecture (include/asm-generic/param.h
// USER_HZ).
const clockTickNs = 1_000_000_000 / 100

// eachNetCounter visits the counters of /proc/PID/net/netstat and snmp: pairs of lines "Tcp: Name Name" and "Tcp: 1
// -1".
func eachNetCounter(b []byte, visit func(group, name string, value int64)) {
	for len(b) > 0 {
		var names, values []byte
		names, b, _ = bytes.Cut(b, []byte("\n"))
		values, b, _ = bytes.Cut(b, []byte("\n"))
		n, v := bytes.Fields(names), bytes.Fields(values)
		if len(n) == 0 || len(n) != len(v) || !bytes.Equal(n[0], v[0]) {
			continue
		}
		group := string(bytes.TrimSuffix(n[0], []byte(":")))
		for i := 1; i < len(n); i++ {
			if x, err := strconv.ParseInt(string(v[i]), 10, 64); err == nil {
				visit(group, string(n[i]), x)
			}
		}
	}
}

// cpuTimes are the times of one line "cpu…" of /proc/stat, in nanoseconds.
type cpuTimes struct {
	busy    int64 // user, nice, system, irq, softirq
	softirq int64
	steal   int64 // the hypervisor ran something else
}

// parseCPUTimes reads the lines "cpu" (all, key -1) and "cpuN" of /proc/stat: user nice system idle iowait irq softirq
// steal.
func parseCPUTimes(b []byte, visit func(cpu int, t cpuTimes)) {
	for line := range bytes.Lines(b) {
		rest, ok := bytes.CutPrefix(line, []byte("cpu"))
		if !ok {
			return // the cpu lines come first
		}
		cpu := int64(-1)
		if len(rest) > 0 && rest[0] != ' ' {
			if cpu, rest, ok = scanUint(rest); !ok || cpu > 1<<20 {
				continue
			}
		}
		var f [8]int64
		for i := range f {
			if f[i], rest, ok = scanUint(rest); !ok {
				break // kernels before 2.6.11 have no steal
			}
			if f[i] > (1<<63-1)/clockTickNs/8 {
				f[i] = 0
			}
		}
		visit(int(cpu), cpuTimes{
			busy: (f[0] + f[1] + f[2] + f[5] + f[6]) * clockTickNs, softirq: f[6] * clockTickNs,
			steal: f[7] * clockTickNs,
		})
	}
}

// cpuSet is a list of CPUs as in Cpus_allowed_list: "0-3,8".
type cpuSet map[int]bool

func parseCPUSet(s string) cpuSet {
	set := cpuSet{}
	for part := range bytes.SplitSeq([]byte(s), []byte(",")) {
		first, last, ranged := bytes.Cut(bytes.TrimSpace(part), []byte("-"))
		a, err := strconv.Atoi(string(first))
		if err != nil || a < 0 {
			continue
		}
		b := a
		if ranged {
			if b, err = strconv.Atoi(string(last)); err != nil {
				continue
			}
		}
		for cpu := a; cpu <= b && cpu < 8192; cpu++ {
			set[cpu] = true
		}
	}
	return set
}
