//go:build linux

package tap

import "net/netip"

// Bounds of what the book remembers, so that a long watch of connections that come and go does not grow. The programs
// watch 20 000 connections at once (max_conns of bpf/maps.h).
const (
	// keepFor is how long after the end of a connection what is known of it stays: its last calls are joined and named
	// a little later.
	keepFor = 2 * joinWithin
	// keepThreadFor is how long after the last thing that a thread did it is remembered. Nothing that old is looked for
	// (see longest).
	keepThreadFor = int64(120e9)

	maxEnds      = 40_000 // connections, those that ended lately among them
	maxIdle      = 4096   // processes without a connection
	maxHistories = 8192   // threads that did something long
)

// own notes that a process has the client's end of a connection.
func (b *book) own(client netip.AddrPort, p process) {
	before, known := b.ends[client]
	if !known {
		if len(b.ends) >= maxEnds {
			b.makeRoom()
		}
		b.owned[uint32(p.pid)]++
	} else if before.pid != p.pid {
		b.owned[uint32(p.pid)]++
		b.disown(uint32(before.pid))
	}
	delete(b.idle, uint32(p.pid))
	b.ends[client] = p
	b.local[client] = true
}

// leave forgets a connection a little later than it ended.
func (b *book) leave(client netip.AddrPort, at int64) { b.leaving[client] = at + keepFor }

// forget drops what nothing will refer to any more.
func (b *book) forget(now int64) {
	for client, due := range b.leaving {
		if now >= due {
			b.forgetEnd(client)
		}
	}
	if now < b.swept+keepThreadFor/8 && len(b.threads) < maxHistories {
		return
	}
	b.swept = now
	for keep := keepThreadFor; keep == keepThreadFor || len(b.threads) >= maxHistories && keep > 0; keep /= 2 {
		for tid, h := range b.threads {
			if h.last() >= now-keep {
				continue
			}
			delete(b.threads, tid)
			if keep < keepThreadFor {
				b.forgotten++
			}
		}
	}
}

func (b *book) forgetEnd(client netip.AddrPort) {
	p, known := b.ends[client]
	delete(b.leaving, client)
	delete(b.ends, client)
	delete(b.resent, client)
	delete(b.local, client)
	if known {
		b.disown(uint32(p.pid))
	}
}

// disown notes that a process has one connection less. One without any is remembered, as it may open the next, until
// there are too many of them.
func (b *book) disown(pid uint32) {
	if b.owned[pid]--; b.owned[pid] > 0 {
		return
	}
	delete(b.owned, pid)
	b.idle[pid] = true
	for pid := range b.idle {
		if len(b.idle) <= maxIdle {
			return
		}
		delete(b.idle, pid)
		delete(b.names, pid)
		delete(b.readers, pid)
		if b.gone != nil {
			b.gone(pid)
		}
	}
}

// makeRoom forgets a connection whose end was never told (reports were lost). Which one is left to chance; what is
// still used is learned anew.
func (b *book) makeRoom() {
	for client := range b.ends {
		b.forgetEnd(client)
		b.forgotten++
		return
	}
}

// put adds to a map by connection, and makes room in one that is full as above.
func put[K comparable, V any](b *book, m map[K]V, conn K, v V) {
	if _, known := m[conn]; !known && len(m) >= maxEnds {
		for other := range m {
			delete(m, other)
			b.forgotten++
			break
		}
	}
	m[conn] = v
}

// last is when the last thing ended that is known of a thread.
func (h *history) last() (ns int64) {
	for _, list := range [][]deed{h.items, h.waits, h.inner} {
		if n := len(list); n > 0 {
			ns = max(ns, list[n-1].to)
		}
	}
	return ns
}
