package host

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Locate finds the process that serves the other end of a connection, or that listens at an address, on this host in
// any network namespace. It answers ErrNotHere when there is none, and an error that wraps os.ErrPermission when the
// socket is here but its owner may not be seen.
func Locate(fs FS, q Query) (Process, error) {
	if fs == nil {
		fs = Root{}
	}
	if q.PeerPID > 0 {
		return describe(fs, q.PeerPID, q, 0)
	}
	if q.UnixPath != "" {
		return locateUnix(fs, q)
	}
	local, remote, known := q.connection()
	if known { // most often it is in our own namespace, and no other has to be searched
		if s := find(fs, os.Getpid(), Ends{remote, local}); s.Inode != 0 {
			return owner(fs, map[uint64]bool{s.Inode: true}, q, int(s.Local.Port()))
		}
	}
	spaces, err := netSpaces(fs)
	if err != nil {
		return Process{}, err
	}
	inodes, port := matchConnection(fs, spaces, q)
	if len(inodes) == 0 {
		inodes, port = matchListener(fs, spaces, q)
	}
	if len(inodes) == 0 {
		return Process{}, ErrNotHere
	}
	return owner(fs, inodes, q, port)
}

// netSpace is a network namespace with a process that lives in it.
type netSpace struct {
	id  string
	pid int
	own bool
}

// netSpaces lists the network namespaces of all processes, slowpath's own first. A namespace without a process has no
// server.
func netSpaces(fs FS) ([]netSpace, error) {
	pids, err := pids(fs)
	if err != nil {
		return nil, err
	}
	self, _ := fs.Readlink("/proc/thread-self/ns/net")
	spaces := []netSpace{}
	seen := map[string]bool{}
	for _, pid := range pids {
		id, err := fs.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
		if err != nil || seen[id] {
			continue
		}
		seen[id] = true
		spaces = append(spaces, netSpace{id: id, pid: pid, own: id == self})
	}
	for i := range spaces {
		if spaces[i].own {
			spaces[0], spaces[i] = spaces[i], spaces[0]
		}
	}
	return spaces, nil
}

func pids(fs FS) ([]int, error) {
	names, err := fs.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	list := make([]int, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			list = append(list, pid)
		}
	}
	return list, nil
}

// connection is the two ends of the connection of the query, false where it has none.
func (q *Query) connection() (local, remote netip.AddrPort, ok bool) {
	local, err1 := netip.ParseAddrPort(q.Local)
	remote, err2 := netip.ParseAddrPort(q.Remote)
	return unmapped(local), unmapped(remote), err1 == nil && err2 == nil
}

// find is a socket of a namespace by its ends. Its State is 0 where it is not there.
func find(fs FS, pid int, e Ends) (s Socket) {
	table, err := fs.Sockets(pid)
	if err != nil {
		return s
	}
	defer table.Close()
	_ = table.Find([]Ends{e}, func(found *Socket) { s = *found })
	return s
}

// otherEnd finds the socket at the other end of a connection in a namespace, and those that may be it behind
// destination NAT (a published container port, a Kubernetes service): there the server sees another local address, and
// perhaps another remote one, so that only our ephemeral port identifies it.
func otherEnd(fs FS, pid int, local, remote netip.AddrPort) (exact Socket, candidates []Socket) {
	eachSocket(fs, pid, SocketQuery{States: 1 << tcpEstablished}, func(s *Socket) bool {
		switch {
		case s.Local == remote && s.Remote == local:
			exact = *s
		case s.Remote.Port() == local.Port() && s.Local != local && (s.Remote.Addr() == local.Addr() ||
			s.Local.Port() == remote.Port()):
			candidates = append(candidates, *s)
		}
		return exact.State == 0
	})
	return exact, candidates
}

// matchConnection searches all namespaces for the socket at the other end of our connection.
func matchConnection(fs FS, spaces []netSpace, q Query) (inodes map[uint64]bool, port int) {
	local, remote, ok := q.connection()
	if !ok {
		return nil, 0
	}
	var candidates []Socket
	for _, space := range spaces {
		exact, more := otherEnd(fs, space.pid, local, remote)
		if exact.State != 0 {
			return map[uint64]bool{exact.Inode: true}, int(exact.Local.Port())
		}
		candidates = append(candidates, more...)
	}
	candidates = slices.DeleteFunc(candidates, func(s Socket) bool { return dialledHere(fs, spaces, s) })
	if len(candidates) == 0 {
		return nil, 0
	}
	inodes = map[uint64]bool{}
	for _, s := range candidates {
		inodes[s.Inode] = true
	}
	return inodes, int(candidates[0].Local.Port())
}

// dialledHere reports whether the other end of a socket is on this host, and has its addresses: then another client has
// our ephemeral port for a connection of its own. Where an address was translated, no socket has these ends.
func dialledHere(fs FS, spaces []netSpace, s Socket) bool {
	return slices.ContainsFunc(spaces, func(space netSpace) bool {
		return find(fs, space.pid, Ends{s.Remote, s.Local}).State != 0
	})
}

func matchListener(fs FS, spaces []netSpace, q Query) (inodes map[uint64]bool, port int) {
	address := q.Listen
	if address == "" {
		address = q.Remote
	}
	host, portText, err := splitHostPort(address)
	if err != nil {
		return nil, 0
	}
	port, err = strconv.Atoi(portText)
	if err != nil || port <= 0 {
		return nil, 0
	}
	want, err := netip.ParseAddr(host)
	switch {
	case err == nil:
		want = want.Unmap()
	case host == "" || host == "localhost":
		want = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	default:
		return nil, 0
	}
	inodes = map[uint64]bool{}
	for _, space := range spaces {
		if want.IsLoopback() && !space.own {
			continue
		}
		here := want.IsLoopback() || want.IsUnspecified() || localAddress(fs, space.pid, want)
		if !here {
			continue
		}
		eachSocket(fs, space.pid, SocketQuery{States: 1 << tcpListen, LocalPort: port}, func(s *Socket) bool {
			a := s.Local.Addr()
			if a == want || a.IsUnspecified() || want.IsUnspecified() || (host == "localhost" && a.IsLoopback()) {
				inodes[s.Inode] = true
			}
			return true
		})
		if len(inodes) > 0 {
			break
		}
	}
	return inodes, port
}

func eachSocket(fs FS, pid int, q SocketQuery, visit func(*Socket) bool) {
	table, err := fs.Sockets(pid)
	if err != nil {
		return
	}
	defer table.Close()
	_ = table.Visit(q, visit)
}

func unmapped(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

func splitHostPort(address string) (host, port string, err error) {
	i := strings.LastIndexByte(address, ':')
	if i < 0 {
		return "", "", fmt.Errorf("address %q has no port", address)
	}
	return strings.Trim(address[:i], "[]"), address[i+1:], nil
}

// localAddress says whether an address is one of a namespace's own: /proc/PID/net/fib_trie has "|-- ADDRESS" followed
// by a line "/32 host LOCAL", /proc/PID/net/if_inet6 has IPv6 addresses in hex.
func localAddress(fs FS, pid int, a netip.Addr) bool {
	if a.Is4() {
		b, err := fs.ReadFile(fmt.Sprintf("/proc/%d/net/fib_trie", pid))
		if err != nil {
			return false
		}
		_, rest, ok := strings.Cut(string(b), "|-- "+a.String()+"\n")
		for ok {
			line, _, _ := strings.Cut(rest, "\n")
			if strings.Contains(line, "/32 host LOCAL") {
				return true
			}
			_, rest, ok = strings.Cut(rest, "|-- "+a.String()+"\n")
		}
		return false
	}
	b, err := fs.ReadFile(fmt.Sprintf("/proc/%d/net/if_inet6", pid))
	if err != nil {
		return false
	}
	return strings.Contains(string(b), fmt.Sprintf("%x", a.As16()))
}

// locateUnix finds who listens at the path of a unix socket: num refcount protocol flags type state inode path.
func locateUnix(fs FS, q Query) (Process, error) {
	spaces, err := netSpaces(fs)
	if err != nil {
		return Process{}, err
	}
	const listening = "00010000" // __SO_ACCEPTCON
	inodes := map[uint64]bool{}
	for _, space := range spaces {
		b, err := fs.ReadFile(fmt.Sprintf("/proc/%d/net/unix", space.pid))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(b)) {
			f := strings.Fields(line)
			if len(f) != 8 || f[7] != q.UnixPath || f[3] != listening {
				continue
			}
			if n, err := strconv.ParseUint(f[6], 10, 64); err == nil {
				inodes[n] = true
			}
		}
	}
	if len(inodes) == 0 {
		return Process{}, ErrNotHere
	}
	return owner(fs, inodes, q, 0)
}
