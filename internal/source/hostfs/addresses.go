package hostfs

import "net"

// maxAddresses bounds the addresses of this host that are told.
const maxAddresses = 64

// Addresses are the addresses by which others reach this host.
func Addresses() (out []string) {
	all, _ := net.InterfaceAddrs() // without rights there are none
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() && len(out) < maxAddresses {
			out = append(out, n.IP.String())
		}
	}
	return out
}
