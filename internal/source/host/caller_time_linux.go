package host

import (
	"slices"

	"slowpath/internal/recording"
)

// sleepReason is what a thread sleeps for, as its system call tells.
type sleepReason uint8

const (
	awake sleepReason = iota // it runs, or waits for a CPU
	forReply
	forDial
	forLock   // for another thread of its process
	forLimit  // in a futex with a time limit: for another thread, or by itself
	forTimer  // by itself
	forEvents // for whatever comes first
	forOne    // for one descriptor, in a poll, until it is known which that is
	forPeer   // for what another service sends
	forOthers // in another system call
	forDisk
	whileFrozen
	sleepReasons
)

// sleepOf is what a thread sleeps for, by its system call. Where that depends on what is open under a descriptor, or on
// what an epoll waits for, fd is the descriptor, else -1.
func sleepOf(call string, args [4]uint64) (reason sleepReason, fd int) {
	fd = -1
	if args[0] < 1<<31 {
		fd = int(args[0])
	}
	switch call {
	case "epoll_wait", "epoll_pwait", "epoll_pwait2":
		return forEvents, fd
	case "read", "readv", "recvfrom", "recvmsg", "write", "writev", "sendto", "sendmsg":
		return forOthers, fd
	case "connect":
		return forDial, fd
	case "poll", "ppoll":
		switch args[1] {
		case 0:
			return forTimer, -1
		case 1:
			return forOne, -1
		}
		return forEvents, -1
	case "select", "pselect6":
		if args[0] == 0 {
			return forTimer, -1
		}
		return forEvents, -1
	case "accept", "accept4", "io_getevents", "io_uring_enter":
		return forEvents, -1
	case "nanosleep", "clock_nanosleep":
		return forTimer, -1
	case "futex":
		if args[3] == 0 {
			return forLock, -1
		}
		return forLimit, -1
	case "page-fault":
		return forDisk, -1
	}
	return forOthers, -1
}

// timeSum is where the time of threads went, in nanoseconds.
type timeSum struct {
	threads     int
	ran, waited int64               // on a CPU, and for one
	slept       [sleepReasons]int64 // by reason
	outside     recording.WaitList  // of forPeer, forOthers and forDisk
}

func (s *timeSum) add(o *timeSum) {
	s.threads += o.threads
	s.ran += o.ran
	s.waited += o.waited
	for i, ns := range o.slept {
		s.slept[i] += ns
	}
	for _, w := range o.outside {
		s.sleptFor(w, w.Ns)
	}
}

// sleptFor adds ns nanoseconds of a sleep for something outside the process. How often that was is not known.
func (s *timeSum) sleptFor(what recording.WaitsFor, ns int64) {
	if what.Ns = ns; what.Name() != "" && ns > 0 {
		s.outside.Add(what)
	}
}

// waits is the sum as recordings have it.
func (s *timeSum) waits() recording.ThreadWaits {
	w := recording.ThreadWaits{
		Threads: s.threads, Ns: s.ran + s.waited,
		RedisNs: s.slept[forReply], DialNs: s.slept[forDial], LockNs: s.slept[forLock],
		LimitNs: s.slept[forLimit], TimerNs: s.slept[forTimer],
		EventsNs: s.slept[forEvents], OthersNs: s.slept[forOthers],
		PeersNs: s.slept[forPeer], RunQueueNs: s.waited, FrozenNs: s.slept[whileFrozen], BlockedNs: s.slept[forDisk],
		Outside: slices.Clone(s.outside),
	}
	w.Outside.Keep()
	for _, ns := range s.slept {
		w.Ns += ns
	}
	return w
}

// threadTime is where the time of one thread went, out of samples of it. The kernel counts for how long it ran, and for
// how long it waited for a CPU, exactly; between two samples it slept for the rest, for what it was seen to wait for at
// both of them.
type threadTime struct {
	timeSum
	at     int64 // of the last sample; 0: none
	reason sleepReason
	what   recording.WaitsFor // outside its process; else without a name
	schedstat
	unknown int64 // it slept, and was awake at all samples since
	early   int64 // of waited, what the kernel counts when the wait ends
}

// sleepsOn reports whether a thread is in the same sleep as at the last sample.
func (t *threadTime) sleepsOn(s schedstat) bool {
	return t.at != 0 && t.reason != awake && s.arrivals == t.arrivals
}

// sample takes a sample at a time, in nanoseconds. what is the thing outside its process that the thread sleeps for.
func (t *threadTime) sample(at int64, s schedstat, reason sleepReason, what recording.WaitsFor) {
	before := *t
	t.at, t.schedstat, t.reason, t.what = at, s, reason, what
	dt, arrived := at-before.at, s.arrivals-before.arrivals
	if before.at == 0 || dt <= 0 || arrived < 0 {
		return
	}
	ran := min(max(s.runNs-before.runNs, 0), dt)
	waited := max(s.delayNs-before.delayNs, 0)
	counted := min(waited, t.early)
	t.early -= counted
	waited = min(waited-counted, dt-ran)
	if before.reason == awake && reason == awake && arrived == 0 { // it did not sleep, and did not get another CPU
		if ran > 0 {
			ran, waited = dt, 0 // run_ns grows at the timer tick
		} else {
			t.early, waited = t.early+dt, dt
		}
	}
	t.ran, t.waited = t.ran+ran, t.waited+waited
	t.slumber(dt-ran-waited, sleep{before.reason, before.what}, sleep{reason, what})
}

// sleep is what a thread sleeps for.
type sleep struct {
	reason sleepReason
	what   recording.WaitsFor
}

// slumber adds a sleep to what the thread was seen to wait for before it and after it.
func (t *threadTime) slumber(ns int64, before, after sleep) {
	switch {
	case before.reason == awake && after.reason == awake:
		t.unknown += ns
		return
	case before.reason == awake:
		before = after
	case after.reason == awake:
		after = before
	}
	ns, t.unknown = ns+t.unknown, 0
	t.slept[before.reason] += ns / 2
	t.sleptFor(before.what, ns/2)
	t.slept[after.reason] += ns - ns/2
	t.sleptFor(after.what, ns-ns/2)
}
