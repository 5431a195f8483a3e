//go:build linux

package engine

import (
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// poller is an edge-triggered epoll, with an eventfd by which other threads wake it.
type poller struct {
	fd, wake int
	events   [256]unix.EpollEvent
	coarse   bool // no epoll_pwait2 (before Linux 5.11): timeouts have whole milliseconds
}

// wakeIndex is the event of poller.wake; connections have their index.
const wakeIndex = -1

func (p *poller) open() (err error) {
	if p.fd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("epoll_create1: %w", err)
	}
	if p.wake, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err != nil {
		unix.Close(p.fd)
		return fmt.Errorf("eventfd: %w", err)
	}
	return p.add(p.wake, wakeIndex, unix.EPOLLIN)
}

func (p *poller) close() {
	unix.Close(p.wake)
	unix.Close(p.fd)
}

// add registers a socket.
func (p *poller) add(fd, index int, events uint32) error {
	e := unix.EpollEvent{Events: events | unix.EPOLLET, Fd: int32(index)}
	if err := unix.EpollCtl(p.fd, unix.EPOLL_CTL_ADD, fd, &e); err != nil {
		return fmt.Errorf("epoll_ctl: %w", err)
	}
	return nil
}

// wakeUp may be called by any thread.
func (p *poller) wakeUp() {
	one := [8]byte{1}
	_, _ = unix.Write(p.wake, one[:]) // a full counter wakes as well
}

func (p *poller) drainWake() {
	var b [8]byte
	_, _ = unix.Read(p.wake, b[:])
}

// wait gives the events that are there or come within timeout; with 0 it does not sleep. The Go scheduler is not
// notified of the sleep: it would give the worker's processor to another thread, and its monitor thread would run every
// 20 µs. A signal ends the sleep, also the one by which the runtime stops the world.
func (p *poller) wait(timeout time.Duration) (int, error) {
	for {
		var n uintptr
		var errno unix.Errno
		events := uintptr(unsafe.Pointer(&p.events[0]))
		switch {
		case timeout <= 0:
			n, _, errno = unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.fd), events, uintptr(len(p.events)), 0, 0, 0)
		case p.coarse:
			n, _, errno = unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.fd), events, uintptr(len(p.events)),
				uintptr(timeout/time.Millisecond), 0, 0)
		default:
			ts := unix.NsecToTimespec(int64(timeout))
			n, _, errno = unix.RawSyscall6(unix.SYS_EPOLL_PWAIT2, uintptr(p.fd), events, uintptr(len(p.events)),
				uintptr(unsafe.Pointer(&ts)), 0, 0)
			if errno == unix.ENOSYS {
				p.coarse = true
				continue
			}
		}
		switch errno {
		case 0:
			return int(n), nil
		case unix.EINTR:
			return 0, nil
		}
		return 0, fmt.Errorf("epoll_wait: %w", errno)
	}
}
