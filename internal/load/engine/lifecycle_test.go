package engine

import (
	"testing"

	"golang.org/x/sys/unix"

	"slowpath/internal/load/workload"
	"slowpath/internal/wire/target"
)

// TestEventOfClosedSocket: a forked process holds our sockets for a moment, so that epoll can report one that was
// closed. The event is not taken for one of the next connection with the same index.
func TestEventOfClosedSocket(t *testing.T) {
	o := options(t, target.Target{})
	o.PerCall, o.Pipeline, o.Threads = true, 1, 1
	w, err := newWorker(&run{Options: o}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	w.tally = o.NewTally()
	w.conns = append(w.conns, nil)
	w.resetUnconnected(0)
	w.countBegun()
	w.conns[0].push(0, 0, workload.Request{})
	w.handle(&unix.EpollEvent{Fd: 0, Events: unix.EPOLLIN | unix.EPOLLRDHUP})
	if w.inFlight != 1 || w.conns[0].count != 1 || w.tally.Lost != 0 {
		t.Errorf("%d in flight, %d lost", w.inFlight, w.tally.Lost)
	}
}
