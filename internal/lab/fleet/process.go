package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Process identifies a process: a pid may be reused, but not together with the start time.
type Process struct {
	PID        int    `json:"pid"`
	StartTicks uint64 `json:"start_ticks"` // field 22 of /proc/PID/stat: clock ticks after boot
}

// procStat is what the lab needs of /proc/PID/stat (proc(5)).
type procStat struct {
	state   byte
	session int
	tty     int
	threads int
	start   uint64
}

// parseStat reads the fields after the comm, which is in parentheses and may itself contain spaces and parentheses.
func parseStat(body []byte) (procStat, error) {
	end := bytes.LastIndexByte(body, ')')
	if end < 0 {
		return procStat{}, errors.New("no comm in stat")
	}
	f := strings.Fields(string(body[end+1:])) // f[0] is field 3
	if len(f) < 20 || len(f[0]) != 1 {
		return procStat{}, errors.New("too few fields in stat")
	}
	session, err1 := strconv.Atoi(f[3])
	tty, err2 := strconv.Atoi(f[4])
	threads, err3 := strconv.Atoi(f[17])
	start, err4 := strconv.ParseUint(f[19], 10, 64)
	return procStat{state: f[0][0], session: session, tty: tty, threads: threads, start: start},
		errors.Join(err1, err2, err3, err4)
}

func (h Host) stat(pid int) (procStat, error) {
	body, err := os.ReadFile(filepath.Join(h.Proc, strconv.Itoa(pid), "stat"))
	if err != nil {
		return procStat{}, err
	}
	return parseStat(body)
}

// process identifies a running process by its pid.
func (h Host) process(pid int) (Process, error) {
	st, err := h.stat(pid)
	if err != nil {
		return Process{}, fmt.Errorf("identifying process %d: %w", pid, err)
	}
	return Process{PID: pid, StartTicks: st.start}, nil
}

// alive reports whether a process is alive. A zombie is not: it holds nothing any more, and its parent may be slow to
// reap it. It is as long as other threads of it end, which keep its files open, and with them its port.
func (h Host) alive(p Process) bool {
	st, err := h.stat(p.PID)
	ended := st.state == 'X' || st.state == 'Z' && st.threads <= 1
	return err == nil && st.start == p.StartTicks && !ended
}

// pids lists the processes of the host.
func (h Host) pids() []int {
	entries, err := os.ReadDir(h.Proc)
	if err != nil {
		return nil
	}
	var pids []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// inDirectory finds processes that work in dir and have no terminal: those that a killed lab had started but not yet
// recorded. A user's shell in the same directory has a terminal.
func (h Host) inDirectory(dir string) []Process {
	var out []Process
	for _, pid := range h.pids() {
		cwd, err := os.Readlink(filepath.Join(h.Proc, strconv.Itoa(pid), "cwd"))
		if err != nil || strings.TrimSuffix(cwd, " (deleted)") != dir {
			continue
		}
		if st, err := h.stat(pid); err == nil && st.tty == 0 && pid != os.Getpid() {
			out = append(out, Process{PID: pid, StartTicks: st.start})
		}
	}
	return out
}

// sessionOf finds the other processes of the session of p, which has ended, such as the child of a BGSAVE.
func (h Host) sessionOf(p Process) []Process {
	if st, err := h.stat(p.PID); err == nil && st.start != p.StartTicks {
		return nil // the pid was reused, and the session id with it
	}
	var out []Process
	for _, pid := range h.pids() {
		st, err := h.stat(pid)
		if err == nil && st.session == p.PID && pid != p.PID && st.start >= p.StartTicks {
			out = append(out, Process{PID: pid, StartTicks: st.start})
		}
	}
	return out
}

// How long a server may take to end after SIGTERM, and after SIGKILL.
const (
	termGrace = 2 * time.Second
	killGrace = 10 * time.Second
	exitPoll  = 5 * time.Millisecond
)

// end ends p and its session: with SIGTERM, then SIGKILL.
func (h Host) end(ctx context.Context, p Process) error {
	if err := h.signal(p, syscall.SIGTERM); err != nil {
		return err
	}
	if err := h.signal(p, syscall.SIGCONT); err != nil { // a stopped process does not see SIGTERM
		return err
	}
	grace, cancel := context.WithTimeout(ctx, termGrace)
	defer cancel()
	if h.awaitExit(grace, p) != nil {
		if err := h.kill(ctx, p); err != nil {
			return err
		}
	}
	for _, rest := range h.sessionOf(p) {
		if err := h.kill(ctx, rest); err != nil {
			return err
		}
	}
	return nil
}

// kill ends p even if ctx has ended: a cancelled caller must not leave a process.
func (h Host) kill(ctx context.Context, p Process) error {
	if err := h.signal(p, syscall.SIGKILL); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killGrace)
	defer cancel()
	if err := h.awaitExit(ctx, p); err != nil {
		st, _ := h.stat(p.PID)
		return fmt.Errorf("process %d still exists %v after SIGKILL, in state %c", p.PID, killGrace, st.state)
	}
	return nil
}

func (h Host) awaitExit(ctx context.Context, p Process) error {
	return poll(ctx, exitPoll, func() (bool, error) { return !h.alive(p), nil })
}

// signal goes through a pidfd (os.FindProcess) that is opened before the start time is compared, so that it
// cannot reach another process with the same pid. A process that has ended is no error.
func (h Host) signal(p Process, sig syscall.Signal) error {
	if p.PID <= 1 {
		return fmt.Errorf("refusing to signal process %d", p.PID)
	}
	handle, err := os.FindProcess(p.PID)
	if err != nil {
		return fmt.Errorf("opening process %d: %w", p.PID, err)
	}
	defer handle.Release()
	if !h.alive(p) {
		return nil
	}
	if err := handle.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("sending %v to process %d: %w", sig, p.PID, err)
	}
	return nil
}
