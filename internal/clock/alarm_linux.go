package clock

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Alarm sleeps with a precision of about 50 µs, at the cost of one wake-up. The runtime's own timers are up to a
// millisecond late in an idle process (its poller waits whole milliseconds), and a thread that sleeps in a system call
// costs several wake-ups of the runtime. A timerfd is a file that the runtime's poller waits for like for a socket. An
// Alarm is for one goroutine.
type Alarm struct {
	ctx  context.Context
	file *os.File
	conn syscall.RawConn
	stop func() bool
}

// NewAlarm makes an alarm whose sleeps end early when ctx does.
func NewAlarm(ctx context.Context) (*Alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("making a timer: %w", err)
	}
	a := &Alarm{ctx: ctx, file: os.NewFile(uintptr(fd), "timerfd")}
	if a.conn, err = a.file.SyscallConn(); err != nil {
		a.file.Close()
		return nil, fmt.Errorf("making a timer: %w", err)
	}
	a.stop = context.AfterFunc(ctx, func() { _ = a.file.SetReadDeadline(time.Unix(1, 0)) }) // a timerfd takes deadlines
	return a, nil
}

// Sleep sleeps for d, or not at all where d is not positive. It reports false when the context has ended.
func (a *Alarm) Sleep(d time.Duration) bool {
	if d <= 0 || a.ctx.Err() != nil {
		return a.ctx.Err() == nil
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
	var set error
	if err := a.conn.Control(func(fd uintptr) { set = unix.TimerfdSettime(int(fd), 0, &spec, nil) }); err != nil ||
		set != nil {
		return false
	}
	var expirations [8]byte
	_, err := a.file.Read(expirations[:])
	return err == nil
}

// Close frees the timer.
func (a *Alarm) Close() error {
	a.stop()
	return a.file.Close()
}
