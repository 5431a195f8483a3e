package recording

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
)

// CallID is what both ends of a call know of it, as the SHA-256 of "CLUSTER\nCLIENT:PORT\nSEQ": the first 16 bytes are
// the id of its trace (docs/metrics.md). ok is false for a call of which these are not known, such as one of
// slowpath's own.
func CallID(cluster string, c Call) (id [sha256.Size]byte, ok bool) {
	client, err := netip.ParseAddrPort(c.Conn)
	if err != nil || c.Seq == 0 {
		return id, false
	}
	client = netip.AddrPortFrom(client.Addr().Unmap().WithZone(""), client.Port())
	return sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%d", cluster, client, c.Seq)), true
}
