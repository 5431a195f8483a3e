//go:build linux

package tap

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// processEnds finds out which processes have ended: what hooks them, or is known of them, is of no use any more. A
// number may be that of another process by then, which began later.
type processEnds struct {
	files   Files
	started map[uint32]string // by process: when it began, in ticks of the kernel's clock; "" where it is not known
	checked int64             // when they were looked at last
}

const (
	endsEvery = int64(10e9) // processes are looked at
	maxEnds   = 512         // of them at a time: a file of each is read, which takes some microseconds
)

// watch has the end of a process noticed.
func (e *processEnds) watch(pid uint32) {
	if _, known := e.started[pid]; !known && e.files != nil {
		began, _ := e.began(pid)
		e.started[pid] = began
	}
}

// ended are the processes that have ended since they are watched. They are watched no more.
func (e *processEnds) ended() (out []uint32) {
	looked := 0
	for pid, before := range e.started { // in another order each time
		if looked++; looked > maxEnds {
			break
		}
		switch now, known := e.began(pid); {
		case !known:
		case now != "" && before == "": // it may be read by now
			e.started[pid] = now
		case now != before || now == "":
			delete(e.started, pid)
			out = append(out, pid)
		}
	}
	return out
}

// began is when a process began; "" when it has ended, also if its parent has not taken notice. It is not known where
// that cannot be read.
func (e *processEnds) began(pid uint32) (ticks string, known bool) {
	stat, err := e.files.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return "", true
	}
	const state, threads, startTime = 0, 17, 19 // fields behind the name, which may have blanks (proc_pid_stat(5))
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if err != nil || len(fields) <= startTime {
		return "", false
	}
	if string(fields[state]) == "Z" && len(fields[threads]) == 1 && fields[threads][0] <= '1' {
		return "", true
	}
	return string(fields[startTime]), true
}

// forgetEnded closes what hooks processes that have ended, and drops what is known of them.
func (t *Tap) forgetEnded() {
	for pid := range t.recorder.serving {
		t.ends.watch(pid)
	}
	for _, pid := range t.ends.ended() {
		_ = closeAll(t.functions[pid]) // there is nothing to detach from any more
		delete(t.functions, pid)
		delete(t.recorder.serving, pid)
		t.plaintexts.drop(pid)
		t.collections.drop(pid)
		t.dropGo(pid)
	}
}
