package host

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Spaces are threads that stay in the network namespaces of other processes. Only root may enter one (CAP_SYS_ADMIN),
// but a thread that is there may open sockets and read files there.
type Spaces struct {
	work map[string]chan<- func() // by what /proc/PID/ns/net links to
}

// HoldSpaces enters the network namespaces of this host's processes, up to maxSpaces of them, and stays there until
// Close. Those that may not be entered are left out.
func HoldSpaces(fs FS) *Spaces {
	s := &Spaces{work: map[string]chan<- func(){}}
	spaces, err := netSpaces(fs)
	if err != nil {
		return s
	}
	for _, n := range spaces[:min(len(spaces), maxSpaces)] {
		if n.own {
			continue
		}
		work, entered := make(chan func()), make(chan bool)
		go func() {
			err := inNetNS(n.pid, func() {
				entered <- true
				for do := range work {
					do()
				}
			})
			if err != nil {
				entered <- false
			}
		}()
		if <-entered {
			s.work[n.id] = work
		}
	}
	return s
}

// Close has the threads end. That of nil does nothing.
func (s *Spaces) Close() {
	if s == nil {
		return
	}
	for _, work := range s.work {
		close(work)
	}
}

// in calls do in the network namespace of a process: on the thread that is there, or as inNetNS does.
func (s *Spaces) in(pid int, do func()) error {
	if s != nil {
		if id, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid)); err == nil && s.work[id] != nil {
			done := make(chan struct{})
			s.work[id] <- func() { defer close(done); do() }
			<-done
			return nil
		}
	}
	return inNetNS(pid, do)
}

// inNetNS calls do in the network namespace of a process. For a foreign one, it does so on a thread of its own that is
// never unlocked, so that the runtime ends it instead of using it again in the wrong namespace. The main thread cannot
// be ended, and /proc/self is about it: where the scheduler gives us that one, we hold it until another one has done
// the work.
func inNetNS(pid int, do func()) error {
	if sameNetNS(pid) {
		do()
		return nil
	}
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			defer runtime.UnlockOSThread()
			done <- inNetNS(pid, do)
			return
		}
		err := enterNetNS(pid)
		if err == nil {
			do()
		}
		done <- err
	}()
	return <-done
}

func sameNetNS(pid int) bool {
	a, err1 := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
	b, err2 := os.Readlink("/proc/thread-self/ns/net")
	return err1 == nil && err2 == nil && a == b
}

func enterNetNS(pid int) error {
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/net", pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Setns(fd, unix.CLONE_NEWNET)
}
