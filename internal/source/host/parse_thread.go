package host

import "bytes"

// The parsers here run on every reading of a thread: they read digits out of a buffer and allocate nothing.

// scanUint reads an unsigned decimal number at the start of b after spaces, and gives the rest. Numbers beyond 2^63-1
// fail.
func scanUint(b []byte) (n int64, rest []byte, ok bool) {
	i := 0
	for i < len(b) && (b[i] == ' ' || b[i] == '\t') {
		i++
	}
	start := i
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		d := int64(b[i] - '0')
		if n > (1<<63-1-d)/10 {
			return 0, b, false
		}
		n = n*10 + d
		i++
	}
	return n, b[i:], i > start
}

// scanInt is scanUint with an optional minus.
func scanInt(b []byte) (n int64, rest []byte, ok bool) {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	negative := len(b) > 0 && b[0] == '-'
	if negative {
		b = b[1:]
	}
	n, rest, ok = scanUint(b)
	if negative {
		n = -n
	}
	return n, rest, ok
}

// schedstat is /proc/PID/task/TID/schedstat (fs/proc/base.c proc_pid_schedstat).
type schedstat struct {
	runNs    int64 // on a CPU
	delayNs  int64 // waited for a CPU; grows when the wait ends, and holds throttled time too
	arrivals int64 // times it was given a CPU
}

func parseSchedstat(b []byte) (s schedstat, ok bool) {
	if s.runNs, b, ok = scanUint(b); !ok {
		return schedstat{}, false
	}
	if s.delayNs, b, ok = scanUint(b); !ok {
		return schedstat{}, false
	}
	if s.arrivals, _, ok = scanUint(b); !ok {
		return schedstat{}, false
	}
	return s, true
}

// taskStat is the part of /proc/PID/stat and /proc/PID/task/TID/stat that is used (fs/proc/array.c do_task_stat).
type taskStat struct {
	state      byte
	ppid       int
	minflt     int64
	majflt     int64
	utime      int64 // ticks of USER_HZ, 10 ms
	stime      int64
	threads    int64
	start      int64 // ticks of USER_HZ since boot
	rssPages   int64
	cpu        int
	blkioDelay int64 // ticks of USER_HZ, 0 unless kernel.task_delayacct is on
	commBegin  int   // position of comm in the buffer
	commEnd    int
}

// parseStat reads a stat line. The command is in brackets and may hold brackets and spaces itself.
func parseStat(b []byte) (s taskStat, ok bool) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open || end+2 >= len(b) || b[end+1] != ' ' {
		return taskStat{}, false
	}
	s.commBegin, s.commEnd = open+1, end
	s.state = b[end+2]
	rest := b[end+3:]
	for field := 4; field <= 42; field++ {
		var n int64
		if n, rest, ok = scanNumber(rest); !ok {
			return taskStat{}, false
		}
		s.set(field, n)
	}
	return s, true
}

// scanNumber takes numbers that do not fit (signal masks, addresses) as 0.
func scanNumber(b []byte) (int64, []byte, bool) {
	n, rest, ok := scanInt(b)
	if ok {
		return n, rest, true
	}
	i := 0
	for i < len(b) && (b[i] == ' ' || b[i] == '-') {
		i++
	}
	start := i
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	return 0, b[i:], i > start
}

func (s *taskStat) set(field int, n int64) {
	switch field {
	case 4:
		s.ppid = int(n)
	case 10:
		s.minflt = n
	case 12:
		s.majflt = n
	case 14:
		s.utime = n
	case 15:
		s.stime = n
	case 20:
		s.threads = n
	case 22:
		s.start = n
	case 24:
		s.rssPages = n
	case 39:
		s.cpu = int(n)
	case 42:
		s.blkioDelay = n
	}
}

// cpuStat is cpu.stat of a cgroup. Times are nanoseconds in both versions.
type cpuStat struct {
	periods     int64
	throttled   int64
	throttledNs int64
	bursts      int64
	burstNs     int64
	usageNs     int64 // v2 only
}

// parseCPUStat reads cpu.stat of cgroup v1 (throttled_time, nanoseconds) and v2 (throttled_usec). Unknown lines are
// skipped; ok says that the throttle counters were there (they are missing where the cpu controller is off).
func parseCPUStat(b []byte) (s cpuStat, ok bool) {
	for len(b) > 0 {
		line := b
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			line, b = b[:i], b[i+1:]
		} else {
			b = nil
		}
		i := bytes.IndexByte(line, ' ')
		if i < 0 {
			continue
		}
		n, _, good := scanUint(line[i:])
		if !good {
			continue
		}
		switch string(line[:i]) {
		case "nr_periods":
			s.periods = n
		case "nr_throttled":
			s.throttled, ok = n, true
		case "throttled_time":
			s.throttledNs = n
		case "throttled_usec":
			s.throttledNs = microseconds(n)
		case "nr_bursts":
			s.bursts = n
		case "burst_time":
			s.burstNs = n
		case "burst_usec":
			s.burstNs = microseconds(n)
		case "usage_usec":
			s.usageNs = microseconds(n)
		}
	}
	return s, ok
}

func microseconds(n int64) int64 {
	if n > (1<<63-1)/1000 {
		return 0
	}
	return n * 1000
}
