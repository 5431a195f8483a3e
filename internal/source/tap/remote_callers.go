//go:build linux

package tap

import (
	"net/netip"

	"slowpath/internal/recording"
)

// remoteCallers are other hosts that call. Only the server's end of their connections is seen.
type remoteCallers struct {
	remoteCalls map[uint64]uint64    // of each connection, as counted in hosts
	hosts       map[remoteHost]int64 // calls since the watch began
	newCalls    map[remoteHost]bool  // more than the recording has
}

// remoteHost is a host that calls a node; others beyond maxRemoteHosts have no address.
type remoteHost struct {
	node string
	host netip.Addr
}

const maxRemoteHosts = 1024

// countRemote counts the calls of a connection from another host.
func (r *recorder) countRemote(e *kernelConnEvent, client clientEnd, server netip.AddrPort, n Node) {
	if e.Role != roleServer || client.Addr() == server.Addr() || r.localClients[client] {
		return
	}
	calls, h := e.Calls-e.NoCalls, remoteHost{n.Address, client.Addr()}
	if _, known := r.hosts[h]; !known && len(r.hosts) >= maxRemoteHosts {
		h.host = netip.Addr{}
	}
	if before := r.remoteCalls[e.Conn]; calls > before {
		put(r, r.remoteCalls, e.Conn, calls)
		r.hosts[h] += int64(calls - before)
		r.newCalls[h] = true
	}
}

// writeRemote records how many calls came from each host where there are more.
func (r *recorder) writeRemote(now int64) {
	for h := range r.newCalls {
		name := recording.CallsFromOthers
		if h.host.IsValid() {
			name = h.host.String()
		}
		r.Sink.Sample(recording.Sample{
			TimeNs: now, Source: recording.SourceTap, Subject: h.node, Name: recording.CallsFromPrefix + name,
			Value: float64(r.hosts[h]),
		})
	}
	clear(r.newCalls)
}
