package host

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"
)

// Peer is an address that a process is connected to, over how many connections, and the process's end of one of them.
type Peer struct {
	Addr        netip.AddrPort
	Connections int
	Local       netip.AddrPort
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
	byAddr := map[netip.AddrPort]Peer{}
	for _, state := range []uint32{tcpListen, tcpEstablished} {
		eachSocket(fs, pid, SocketQuery{States: 1 << state}, func(s *Socket) bool {
			switch {
			case !own[s.Inode]:
			case state == tcpListen:
				ports[s.Local.Port()] = true
			case !ports[s.Local.Port()]: // else it was accepted
				to := unmapped(s.Remote)
				byAddr[to] = Peer{to, byAddr[to].Connections + 1, unmapped(s.Local)}
			}
			return true
		})
	}
	peers = slices.Collect(maps.Values(byAddr))
	slices.SortFunc(peers, func(a, b Peer) int {
		return cmp.Or(isRedisPort(b)-isRedisPort(a), b.Connections-a.Connections, a.Addr.Compare(b.Addr))
	})
	return p, peers, nil
}

// maxBehind is how many of the addresses that a proxy is connected to are looked at.
const maxBehind = 16

// Behind finds the server to which a proxy of this host passes calls on: at the other end of one of the proxy's
// connections, and with the process id that its INFO said through the proxy. It answers ErrNotHere when there is none
// on this host, and where the proxy is connected to a second server: calls may go to either.
func Behind(fs FS, proxy, wantPID int) (found Process, err error) {
	_, peers, err := Connected(fs, proxy)
	if err != nil {
		return Process{}, err
	}
	if len(peers) > maxBehind {
		return Process{}, fmt.Errorf("%w: the proxy is connected to %d addresses", ErrNotHere, len(peers))
	}
	var other bool
	for _, peer := range peers {
		q := Query{Network: "tcp", Local: peer.Local.String(), Remote: peer.Addr.String(), WantPID: wantPID}
		switch p, err := Locate(fs, q); {
		case err != nil:
			other = other || isRedisPort(peer) == 1
		case wantPID != 0 && !p.Foreign:
			found = p
		default:
			other = other || p.IsServer()
		}
	}
	if found.PID == 0 || other {
		return Process{}, ErrNotHere
	}
	return found, nil
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
