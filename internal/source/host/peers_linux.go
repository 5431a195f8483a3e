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

// Connected describes a process, and the addresses that it dialled: those with the port of Redis (6379) first, then by
// the number of connections. Nothing is sent to anybody.
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
		return cmp.Or(isRedisPort(b)-isRedisPort(a), b.Connections-a.Connections, a.Addr.Compare(b.Addr))
	})
	return p, peers, nil
}

func isRedisPort(p Peer) int {
	if p.Addr.Port() == 6379 {
		return 1
	}
	return 0
}

// endPollEvery is how often AwaitEnd reads the process.
const endPollEvery = 500 * time.Millisecond

// AwaitEnd returns true when the process has ended, and false when ctx has. Another process that gets the same
// PID is not mistaken for it.
func AwaitEnd(ctx context.Context, fs FS, pid int) bool {
	if fs == nil {
		fs = Root{}
	}
	startTime := func() (int64, bool) {
		b, err := fs.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return 0, false
		}
		s, ok := parseStat(b)
		return s.start, ok && s.state != 'Z' && s.state != 'X'
	}
	first, here := startTime()
	poll := time.NewTicker(endPollEvery)
	defer poll.Stop()
	for here {
		select {
		case <-ctx.Done():
			return false
		case <-poll.C:
		}
		var at int64
		if at, here = startTime(); at != first {
			break
		}
	}
	return true
}
