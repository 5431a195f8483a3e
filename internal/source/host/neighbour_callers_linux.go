package host

import (
	"slices"

	"slowpath/internal/recording"
)

const (
	callerCores   = 0.05 // a neighbour that uses less is not inspected
	callerSockets = 512  // of one process
	callerAgain   = 5    // rounds until a process that was no caller is inspected again
)

// caller is what is known of a neighbour: whether it holds a connection to the server, and in which round that was
// found.
type caller struct {
	yes   bool
	round int
}

// markCallers says of each neighbour whether it is connected to the server: a caller that loads the server is
// another problem than a stranger on its CPUs.
func (w *watch) markCallers(found []recording.Neighbour) {
	for i := range found {
		n := &found[i]
		known, ok := w.callers[n.PID]
		if n.Cores >= callerCores && (!ok || !known.yes && w.scanRound-known.round >= callerAgain) {
			known = caller{w.isCaller(n.PID), w.scanRound}
			w.callers[n.PID] = known
		}
		n.Caller = known.yes
	}
}

// isCaller reports whether a process is among the clients that are known, or holds a socket whose other end is the
// server's port.
func (w *watch) isCaller(pid int) bool {
	if slices.ContainsFunc(w.local, func(c *client) bool { return c.pid == pid }) {
		return true
	}
	own := map[uint64]bool{}
	if err := eachSocketFD(w.FS, pid, func(inode uint64) bool {
		own[inode] = true
		return len(own) < callerSockets
	}); err != nil || len(own) == 0 || w.Port == 0 {
		return false
	}
	is := false
	eachSocket(w.FS, pid, SocketQuery{}, func(s *Socket) bool {
		is = int(s.Remote.Port()) == w.Port && own[s.Inode]
		return !is
	})
	return is
}
