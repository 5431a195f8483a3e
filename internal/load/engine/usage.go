//go:build linux

package engine

import (
	"bytes"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// usage is the time of a thread since its start: on a CPU, and in the run queue.
type usage struct{ cpuNs, runQueueNs int64 }

// meter reads the usage of the thread that opened it, with system calls of which the Go scheduler is not notified.
type meter struct {
	schedstat int // descriptor; -1 on a kernel without CONFIG_SCHED_INFO
	last      usage
}

func openMeter() *meter {
	m := &meter{}
	var err error
	if m.schedstat, err = unix.Open("/proc/thread-self/schedstat", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
		m.schedstat = -1
	}
	m.last = m.read()
	return m
}

func (m *meter) close() {
	if m.schedstat >= 0 {
		unix.Close(m.schedstat)
	}
}

// since gives the usage since the last call.
func (m *meter) since() usage {
	now, last := m.read(), m.last
	m.last = now
	return usage{now.cpuNs - last.cpuNs, now.runQueueNs - last.runQueueNs}
}

func (m *meter) read() (u usage) {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts) == nil {
		u.cpuNs = ts.Nano()
	}
	if m.schedstat < 0 {
		return u
	}
	var b [128]byte // "run_ns delay_ns timeslices" (fs/proc/base.c, proc_pid_schedstat)
	n, _, errno := unix.RawSyscall6(unix.SYS_PREAD64, uintptr(m.schedstat), uintptr(unsafe.Pointer(&b[0])),
		uintptr(len(b)), 0, 0, 0)
	if errno != 0 {
		return u
	}
	if fields := bytes.Fields(b[:n]); len(fields) >= 2 {
		u.runQueueNs, _ = strconv.ParseInt(string(fields[1]), 10, 64) // digits
	}
	return u
}
