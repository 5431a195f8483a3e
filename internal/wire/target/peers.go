package target

import "net/netip"

// MayLogIn reports whether the password for a target, which answered at the address remote, may be sent to a node that
// the target names, without the user having said that all of them may have it (-c). It may where the user's own CA
// vouches for the node, and where both are in private networks: a node that names addresses elsewhere could collect it
// (docs/decisions/0023-password-of-peers.md).
func (t Target) MayLogIn(remote string, peer Target) bool {
	if t.Password == "" || peer.Host == t.Host {
		return true
	}
	if t.TLS != nil && !t.TLS.Insecure && (t.TLS.CACert != "" || t.TLS.CACertDir != "") {
		return true
	}
	from, err1 := netip.ParseAddrPort(remote)
	to, err2 := netip.ParseAddr(peer.Host)
	if err1 != nil || err2 != nil {
		return false
	}
	at, to := from.Addr().Unmap(), to.Unmap()
	return to == at || to.IsPrivate() && (at.IsPrivate() || at.IsLoopback()) || to.IsLoopback() && at.IsLoopback()
}
