//go:build linux

package tap

import (
	"errors"
	"fmt"
	"net/netip"

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
// has two histograms of 2 KiB per CPU, so that the bound is 2 MiB per CPU.
func opsFor(nodes int) uint32 {
	const first, more, most = int(kernelLimitOPS), 64, 512
	return uint32(min(first+more*(max(nodes, 1)-1), most))
}

// loopback addresses reach a server of this host whatever address it is known by.
var loopback = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}

// nameNodes has the programs find the nodes as recorder.node does: by process, by address, and on this host by loopback
// address. Where two share an address, it is the first's.
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
	at := func(a netip.Addr, port int, n Node) error {
		if !a.IsValid() || port == 0 {
			return nil
		}
		return put(kernelNodeKey{Addr: a.As16(), Id: uint32(port)}, n)
	}
	var errs []error
	for _, n := range t.Nodes {
		errs = append(errs, at(n.Remote.Addr(), int(n.Remote.Port()), n))
		if n.PID != 0 {
			errs = append(errs, put(kernelNodeKey{Id: uint32(n.PID)}, n))
		}
	}
	for _, n := range t.Nodes {
		for _, a := range loopback {
			if n.PID != 0 {
				errs = append(errs, at(a, int(n.Remote.Port()), n), at(a, n.Port, n))
			}
		}
	}
	return errors.Join(errs...)
}
