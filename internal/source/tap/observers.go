//go:build linux

package tap

import (
	"net/netip"

	"slowpath/internal/recording"
)

// Own has the programs leave out a socket of slowpath itself, by its cookie (SO_COOKIE): its calls are none of a user.
// It must be called before the socket connects. That it cannot is counted as if it were a user's. The other sources may
// call it and Observe when the tap is closed already.
func (t *Tap) Own(cookie uint64) {
	t.closing.RLock()
	defer t.closing.RUnlock()
	if !t.closed {
		_ = t.kernel.coll.Maps[kernelMapOwnSockets].Put(cookie, uint8(1))
	}
}

// Observe has the programs leave out a connection of another observer that is open now, by the client's address as the
// server has it.
// Connections that say so themselves (CLIENT SETNAME) are known without it.
func (t *Tap) Observe(node string, client netip.AddrPort) {
	t.closing.RLock()
	defer t.closing.RUnlock()
	for i, address := range t.tally.nodes {
		if address == node && !t.closed {
			_ = t.kernel.coll.Maps[kernelMapObservers].Put(kernelObserverKey{
				Addr: client.Addr().As16(), Port: uint32(client.Port()), Node: uint32(i + 1),
			}, uint64(t.Clock.Now()-t.offset))
		}
	}
}

// observer takes what is reported of a connection that is no user's. The recording may have something of one that was
// there before the watch; so it is told once.
func (r *recorder) observer(e *kernelConnEvent, client clientEnd) {
	delete(r.handshakes, e.Conn)
	delete(r.opens, e.Conn)
	if e.Type == evClose {
		delete(r.observers, e.Conn)
		r.endConn(client, r.time(e.Now))
		return
	}
	if e.Addr.Observer != otherObserver || r.observers[e.Conn] {
		return
	}
	put(r, r.observers, e.Conn, true)
	r.Sink.Snapshot(recording.Snapshot{
		TimeNs: r.time(e.Now), Source: recording.SourceTap, Subject: recording.ConnPrefix + client.String(),
		Name: recording.SnapshotObserver, Body: "{}",
	})
}

// rootPIDNamespace is the number of the first PID namespace (include/linux/proc_ns.h, PROC_PID_INIT_INO).
const rootPIDNamespace = 0xEFFFFFFC

// ownPIDNamespace is the number of slowpath's PID namespace; 0 for the first one, whose numbers the kernel's helpers
// give, and where it cannot be read.
func ownPIDNamespace(files Files) uint32 {
	if n := namespaceNumber(files, "/proc/self/ns/pid"); n != rootPIDNamespace {
		return n
	}
	return 0
}

// threadsFor is how many threads are watched at a time for so many connections: as many as the programs have room for
// by default, and one for five connections where that is more.
func threadsFor(connections int) uint32 {
	return max(uint32(kernelLimitTHREADS), uint32(connections/5))
}
