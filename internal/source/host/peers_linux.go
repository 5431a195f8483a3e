package host

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Peer is an address that a process is connected to, and over how many connections.
type Peer struct {
	Addr        netip.AddrPort
	Connections int
}

// Connected describes a process, and the addresses that it dialled, the usual port of Redis first, then by the number
// of connections. Nothing is sent to anybody.
func Connected(fs FS, pid int) (p Process, peers []Peer, err error) {
	if fs == nil {
		fs = Root{}
	}
	if p, err = describe(fs, pid, Query{}, 0); err != nil {
		return p, nil, err
	}
	own := map[uint64]bool{}
	if err := eachSocketFD(fs, pid, func(inode uint64) bool { own[inode] = true; return true }); err != nil {
		return p, nil, fmt.Errorf("reading the sockets of process %d: %w", pid, err)
	}
	ports := map[uint16]bool{}
	count := map[netip.AddrPort]int{}
	for _, state := range []uint32{tcpListen, tcpEstablished} {
		eachSocket(fs, pid, SocketQuery{States: 1 << state}, func(s *Socket) bool {
			switch {
			case !own[s.Inode]:
			case state == tcpListen:
				ports[s.Local.Port()] = true
			case !ports[s.Local.Port()]: // else it was accepted
				count[unmapped(s.Remote)]++
			}
			return true
		})
	}
	for a, n := range count {
		peers = append(peers, Peer{a, n})
	}
	slices.SortFunc(peers, func(a, b Peer) int {
		return cmp.Or(isUsual(b)-isUsual(a), b.Connections-a.Connections, a.Addr.Compare(b.Addr))
	})
	return p, peers, nil
}

func isUsual(p Peer) int {
	if p.Addr.Port() == 6379 {
		return 1
	}
	return 0
}

// lookAgain is how often AwaitEnd looks.
const lookAgain = 500 * time.Millisecond

// AwaitEnd returns true when the process has ended, and false when ctx has. Another process that is given the same
// number is not taken for it.
func AwaitEnd(ctx context.Context, fs FS, pid int) bool {
	if fs == nil {
		fs = Root{}
	}
	begun := func() (int64, bool) {
		b, err := fs.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return 0, false
		}
		s, ok := parseStat(b)
		return s.start, ok && s.state != 'Z' && s.state != 'X'
	}
	first, here := begun()
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for here {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
		var at int64
		if at, here = begun(); at != first {
			break
		}
	}
	return true
}
