package clock

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Alarm sleeps with a precision of about 50 µs, at the cost of one wake-up. The runtime's own timers are up to a
// millisecond late in an idle process (its poller waits whole milliseconds), and a thread that sleeps in a system call
// costs several wake-ups of the runtime. A timerfd is a file that the runtime's poller waits for like for a socket. Its
// system calls do not block and are not announced to the runtime, whose monitor thread would be woken up by them each
// time. An Alarm is for one goroutine.
type Alarm struct {
	ctx  context.Context
	file *os.File // nil: by the runtime's timers
	conn syscall.RawConn
	stop func() bool
	wait func(fd uintptr) bool // armOrRead
	spec unix.ItimerSpec
	set  bool // the timer, for this sleep
	err  error
}

// NewAlarm makes an alarm whose sleeps end early when ctx does.
func NewAlarm(ctx context.Context) (*Alarm, error) {
	if ctx.Value(timersKey{}) != nil {
		return &Alarm{ctx: ctx}, nil
	}
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("making a timer: %w", err)
	}
	a := &Alarm{ctx: ctx, file: os.NewFile(uintptr(fd), "timerfd")}
	if a.conn, err = a.file.SyscallConn(); err != nil {
		a.file.Close()
		return nil, fmt.Errorf("making a timer: %w", err)
	}
	a.wait = a.armOrRead
	a.stop = context.AfterFunc(ctx, func() { _ = a.file.SetReadDeadline(time.Unix(1, 0)) }) // a timerfd takes deadlines
	return a, nil
}

// Sleep sleeps for d, or not at all where d is not positive. It reports false when the context has ended.
func (a *Alarm) Sleep(d time.Duration) bool {
	if d <= 0 || a.ctx.Err() != nil {
		return a.ctx.Err() == nil
	}
	if a.file == nil {
		return sleepByTimer(a.ctx, d)
	}
	a.spec, a.set, a.err = unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}, false, nil
	err := a.conn.Read(a.wait)
	return err == nil && a.err == nil
}

// armOrRead sets the timer when it is called first in a sleep, which is after the poller has forgotten what it saw of
// the file, and then reads it. It reports whether the sleep is over.
func (a *Alarm) armOrRead(fd uintptr) bool {
	if !a.set {
		a.set = true
		if _, _, errno := unix.RawSyscall6(unix.SYS_TIMERFD_SETTIME, fd, 0, uintptr(unsafe.Pointer(&a.spec)), 0, 0,
			0); errno != 0 {
			a.err = errno
		}
		return a.err != nil
	}
	var expirations uint64
	n, _, errno := unix.RawSyscall(unix.SYS_READ, fd, uintptr(unsafe.Pointer(&expirations)),
		unsafe.Sizeof(expirations))
	if errno != 0 && errno != unix.EAGAIN && errno != unix.EINTR {
		a.err = errno
	}
	return a.err != nil || n == unsafe.Sizeof(expirations)
}

// Close frees the timer.
func (a *Alarm) Close() error {
	if a.file == nil {
		return nil
	}
	a.stop()
	return a.file.Close()
}
