//go:build linux

package tap

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
)

// addressesOf nodes, by which the recording knows them: a server that is reached at several addresses is one. The
// programs number them in this order, beginning with 1.
func addressesOf(nodes []Node) (out []string) {
	seen := map[string]bool{}
	for _, n := range nodes {
		if !seen[n.Address] {
			seen[n.Address] = true
			out = append(out, n.Address)
		}
	}
	return out
}

// opsFor is how many commands the programs tell apart for so many nodes, each with the node that it is sent to. Each
// has two histograms of 2 KiB per CPU, so that the bound is 2 MiB per CPU, and 64 MiB for all.
func opsFor(nodes, cpus int) uint32 {
	const first, more, most = int(kernelLimitOPS), 64, 512
	const memory, each = 64 << 20, 4 << 10 // bytes
	room := max(first, memory/each/max(cpus, 1))
	return uint32(min(first+more*(max(nodes, 1)-1), most, room))
}

// loopback addresses reach a server of this host whatever address it is known by.
var loopback = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}

// anyNet stands for a network namespace that could not be found out.
const anyNet = ^uint32(0)

// netOf is the number of a process's network namespace, "thread-self" for slowpath's own.
func netOf(files Files, pid string) uint32 {
	if n := namespaceNumber(files, "/proc/"+pid+"/ns/net"); n != 0 {
		return n
	}
	return anyNet
}

// namespaceNumber reads a link such as "net:[4026531840]"; 0 where that is not possible.
func namespaceNumber(files Files, name string) uint32 {
	text, err := files.Readlink(name)
	if err != nil {
		return 0
	}
	_, number, _ := strings.Cut(strings.TrimSuffix(text, "]"), ":[")
	n, _ := strconv.ParseUint(number, 10, 32)
	return uint32(n)
}

// nameNodes has the programs find the nodes: by process, by address, and on this host by loopback address or by port in
// the network namespace of the process. Where two share an address, it is the first's.
func (t *Tap) nameNodes() error {
	number := map[string]uint32{}
	for i, a := range t.tally.nodes {
		number[a] = uint32(i + 1)
	}
	put := func(k kernelNodeKey, n Node) error {
		err := t.kernel.coll.Maps[kernelMapNodes].Update(k, number[n.Address], ebpf.UpdateNoExist)
		if err != nil && !errors.Is(err, ebpf.ErrKeyExist) {
			return fmt.Errorf("naming %s to the programs: %w", n.Address, err)
		}
		return nil
	}
	at := func(a netip.Addr, port int, net uint32, n Node) error {
		if !a.IsValid() || port == 0 {
			return nil
		}
		if !a.IsLoopback() {
			net = 0
		}
		return put(kernelNodeKey{Addr: a.As16(), Id: uint32(port), Net: net}, n)
	}
	var errs []error
	own := netOf(t.Files, "thread-self")
	for _, n := range t.Nodes {
		errs = append(errs, at(n.Remote.Addr(), int(n.Remote.Port()), own, n))
		if n.PID != 0 {
			errs = append(errs, put(kernelNodeKey{Id: uint32(n.PID)}, n))
		}
	}
	for _, n := range t.Nodes {
		if n.PID == 0 {
			continue
		}
		net := netOf(t.Files, strconv.Itoa(n.PID))
		for _, port := range []int{int(n.Remote.Port()), n.Port} {
			for _, a := range loopback {
				errs = append(errs, at(a, port, net, n))
			}
			if port != 0 {
				errs = append(errs, put(kernelNodeKey{Id: uint32(port), Net: net}, n))
			}
		}
	}
	return errors.Join(errs...)
}
