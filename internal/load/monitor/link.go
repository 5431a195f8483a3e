//go:build linux

package monitor

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"slowpath/internal/load/bottleneck"
	"slowpath/internal/source/host"
)

// link is the interface by which the servers are reached.
type link struct {
	fs        host.FS
	name      string // "" for loopback, for unix sockets, and where it is not known
	bits      float64
	transfers series[transferred]
}

// transferred is the bytes that an interface has received and sent.
type transferred struct{ in, out int64 }

// linkOf finds the interface that has this end of the connections. remote: a server is on another host.
func linkOf(fs host.FS, nodes []*node) (l link, remote bool) {
	l.fs = fs
	for _, n := range nodes {
		a, err := netip.ParseAddrPort(n.localAddr)
		if err != nil || a.Addr().Unmap().IsLoopback() {
			continue
		}
		remote = remote || n.process == nil
		if l.name = interfaceOf(a.Addr().Unmap()); l.name == "lo" {
			l.name = ""
		}
		if l.name != "" {
			break
		}
	}
	if l.name != "" { // Mbit/s; -1, or an error of reading, where the driver does not know it
		if mbit, ok := readNumber(fs, "/sys/class/net/"+l.name+"/speed"); ok && mbit > 0 {
			l.bits = float64(mbit) * 1e6
		}
	}
	return l, remote
}

func interfaceOf(a netip.Addr) string {
	all, err := net.Interfaces()
	if err != nil {
		return ""
	}
	for _, i := range all {
		addrs, _ := i.Addrs()
		for _, have := range addrs {
			if p, err := netip.ParsePrefix(have.String()); err == nil && p.Addr().Unmap() == a {
				return i.Name
			}
		}
	}
	return ""
}

func (l *link) read(now int64) {
	if l.name == "" {
		return
	}
	in, ok1 := readNumber(l.fs, "/sys/class/net/"+l.name+"/statistics/rx_bytes")
	out, ok2 := readNumber(l.fs, "/sys/class/net/"+l.name+"/statistics/tx_bytes")
	if ok1 && ok2 {
		l.transfers.add(now, transferred{in, out})
	}
}

func (l *link) observe(endNs int64, window time.Duration, n *bottleneck.Network) {
	from, to, scale, ok := l.transfers.span(endNs, window)
	if !ok || window <= 0 {
		return
	}
	n.Link, n.LinkBits = l.name, l.bits
	n.LinkUsedBits = 8 * scale * float64(max(to.in-from.in, to.out-from.out)) / window.Seconds()
}

func readNumber(fs host.FS, name string) (int64, bool) {
	b, err := fs.ReadFile(name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return n, err == nil
}
