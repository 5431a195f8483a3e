package host

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
)

// procSockets reads /proc/PID/net/tcp and tcp6: no privilege needed, no TCP_INFO.
type procSockets struct {
	fs  FS
	pid int
}

func (p procSockets) Close() error { return nil }

func (p procSockets) Visit(want SocketQuery, visit func(*Socket) bool) error {
	read := 0
	var first error
	for _, table := range []string{"tcp", "tcp6"} {
		b, err := p.fs.ReadFile(fmt.Sprintf("/proc/%d/net/%s", p.pid, table))
		if err != nil {
			first = err
			continue
		}
		read++
		for line := range bytes.Lines(b) {
			var s Socket
			if !parseProcSocket(line, &s) || !want.takes(&s) {
				continue
			}
			if !visit(&s) {
				return nil
			}
		}
	}
	if read == 0 {
		return fmt.Errorf("reading the sockets of process %d: %w", p.pid, first)
	}
	return nil
}

// VisitUnix answers an error: /proc/PID/net/unix does not say who is connected to whom.
func (p procSockets) VisitUnix(func(UnixSocket) bool) error { return errors.ErrUnsupported }

// Queues needs rtnetlink.
func (p procSockets) Queues(func(Queue) bool) error { return errors.ErrUnsupported }

func (p procSockets) Find(sockets []Ends, found func(*Socket)) error {
	wanted := map[Ends]bool{}
	for _, e := range sockets {
		wanted[e] = true
	}
	return p.Visit(SocketQuery{States: 1 << tcpEstablished}, func(s *Socket) bool {
		if wanted[Ends{s.Local, s.Remote}] {
			found(s)
		}
		return true
	})
}

func (q SocketQuery) takes(s *Socket) bool {
	return (q.States == 0 || q.States&(1<<s.State) != 0) && (q.LocalPort == 0 || int(s.Local.Port()) == q.LocalPort)
}

// parseProcSocket decodes a line of /proc/net/tcp (net/ipv4/tcp_ipv4.c get_tcp4_sock): sl local remote state tx:rx
// timer:when retransmits uid timeout inode. For a listener, rx is the accept queue and its backlog is not there.
func parseProcSocket(line []byte, s *Socket) bool {
	f := bytes.Fields(line)
	if len(f) < 10 {
		return false
	}
	var ok1, ok2 bool
	s.Local, ok1 = procAddr(f[1])
	s.Remote, ok2 = procAddr(f[2])
	state, err := strconv.ParseUint(string(f[3]), 16, 8)
	if !ok1 || !ok2 || err != nil || state > 31 {
		return false
	}
	s.State = uint8(state)
	tx, rx, ok := bytes.Cut(f[4], []byte(":"))
	if !ok {
		return false
	}
	s.SendQ, s.RecvQ = uint32(hexNumber(tx)), uint32(hexNumber(rx))
	timer, _, _ := bytes.Cut(f[5], []byte(":"))
	s.Timer = uint8(hexNumber(timer))
	s.Retransmits = uint8(hexNumber(f[6]))
	s.Inode, err = strconv.ParseUint(string(f[9]), 10, 64)
	return err == nil
}

func hexNumber(b []byte) uint64 {
	n, err := strconv.ParseUint(string(b), 16, 64)
	if err != nil {
		return 0
	}
	return n
}

// procAddr decodes "0100007F:1F90": 32-bit words of the address in the host's byte order, then the port.
func procAddr(f []byte) (netip.AddrPort, bool) {
	host, port, ok := bytes.Cut(f, []byte(":"))
	if !ok || (len(host) != 8 && len(host) != 32) {
		return netip.AddrPort{}, false
	}
	p, err := strconv.ParseUint(string(port), 16, 16)
	if err != nil {
		return netip.AddrPort{}, false
	}
	var raw [16]byte
	n, err := hex.Decode(raw[:], host)
	if err != nil {
		return netip.AddrPort{}, false
	}
	for i := 0; i < n; i += 4 {
		binary.BigEndian.PutUint32(raw[i:], binary.NativeEndian.Uint32(raw[i:]))
	}
	addr, _ := netip.AddrFromSlice(raw[:n])
	return netip.AddrPortFrom(addr.Unmap(), uint16(p)), true
}
