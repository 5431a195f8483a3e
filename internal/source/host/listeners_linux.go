package host

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
)

// Listener is a process that accepts TCP connections at an address.
type Listener struct {
	Process Process
	Addr    netip.AddrPort
}

// Listeners finds where processes with a wanted name accept TCP connections, in all network namespaces of this host, in
// the order of PIDs and ports. Processes whose sockets may not be seen are left out.
func Listeners(fs FS, wanted func(comm string) bool) ([]Listener, error) {
	if fs == nil {
		fs = Root{}
	}
	list, err := pids(fs)
	if err != nil {
		return nil, err
	}
	slices.Sort(list)
	var found []Listener
	for _, pid := range list {
		if !wanted(readLine(fs, fmt.Sprintf("/proc/%d/comm", pid))) {
			continue
		}
		p, err := describe(fs, pid, Query{}, 0)
		if err != nil {
			continue // it has ended
		}
		// A fork (BGSAVE) holds its parent's listeners, too, and accepts nothing.
		if slices.ContainsFunc(found, func(l Listener) bool { return l.Process.PID == p.PPID }) {
			continue
		}
		found = append(found, listenersOf(fs, p)...)
	}
	return found, nil
}

func listenersOf(fs FS, p Process) (found []Listener) {
	inodes := map[uint64]bool{}
	// none where it may not be seen
	_ = eachSocketFD(fs, p.PID, func(inode uint64) bool { inodes[inode] = true; return true })
	eachSocket(fs, p.PID, SocketQuery{States: 1 << tcpListen}, func(s *Socket) bool {
		if inodes[s.Inode] {
			l := Listener{Process: p, Addr: s.Local}
			l.Process.Port = int(s.Local.Port())
			found = append(found, l)
		}
		return true
	})
	slices.SortFunc(found, func(a, b Listener) int {
		return cmp.Or(cmp.Compare(a.Addr.Port(), b.Addr.Port()), a.Addr.Addr().Compare(b.Addr.Addr()))
	})
	return found
}
