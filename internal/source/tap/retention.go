//go:build linux

package tap

import "cmp"

// retention is what the recorder needs to drop what nothing refers to any more, so that a long watch of connections
// that come and go does not grow.
type retention struct {
	ended     map[clientEnd]int64 // connections that ended: when they are dropped
	conns     map[uint32]int      // how many clients' ends each process has
	idle      map[uint32]bool     // processes that had some
	onDropped func(pid uint32)    // called with a process that is dropped; nil: nobody wants to know
	swept     int64               // when threads were last checked
	dropped   int                 // what was lost since there was no room for it
}

func newRetention() retention {
	return retention{ended: map[clientEnd]int64{}, conns: map[uint32]int{}, idle: map[uint32]bool{}}
}

const (
	// keepFor is how long after the end of a connection what is known of it stays: its last calls are joined and named
	// a little later.
	keepFor = 2 * joinWithin
	// keepThread is how long a thread is kept after its last interval. Nothing that old is searched for (see longest).
	keepThread = int64(120e9)

	maxIdle       = 4096 // processes without a connection
	maxThreadLogs = 8192 // threads with long intervals
)

// maxConns is how many connections are kept, those that ended lately among them: the programs follow half as many ends
// at a time.
func (r *recorder) maxConns() int { return 2 * cmp.Or(r.Connections, DefaultConnections) }

// addClient notes that a process has the client's end of a connection.
func (r *recorder) addClient(client clientEnd, p process) {
	before, known := r.clients[client]
	if !known {
		if len(r.clients) >= r.maxConns() {
			r.makeRoom()
		}
		r.conns[uint32(p.pid)]++
	} else if before.pid != p.pid {
		r.conns[uint32(p.pid)]++
		r.removeConn(uint32(before.pid))
	}
	delete(r.idle, uint32(p.pid))
	r.clients[client] = p
	r.localClients[client] = true
}

// endConn has a connection dropped a little later than it ended.
func (r *recorder) endConn(client clientEnd, at int64) { r.ended[client] = at + keepFor }

// expire drops what nothing refers to any more.
func (r *recorder) expire(now int64) {
	for client, due := range r.ended {
		if now >= due {
			r.dropConn(client)
		}
	}
	if now < r.swept+keepThread/8 && len(r.threads) < maxThreadLogs {
		return
	}
	r.swept = now
	for keep := keepThread; keep == keepThread || len(r.threads) >= maxThreadLogs && keep > 0; keep /= 2 {
		for tid, l := range r.threads {
			if l.last() >= now-keep {
				continue
			}
			delete(r.threads, tid)
			if keep < keepThread {
				r.dropped++
			}
		}
	}
}

func (r *recorder) dropConn(client clientEnd) {
	p, known := r.clients[client]
	delete(r.ended, client)
	delete(r.clients, client)
	delete(r.retransmissions, client)
	delete(r.localClients, client)
	if known {
		r.removeConn(uint32(p.pid))
	}
}

// removeConn notes that a process has one connection less. One without any is kept, as it may open the next, until
// there are too many of them.
func (r *recorder) removeConn(pid uint32) {
	if r.conns[pid]--; r.conns[pid] > 0 {
		return
	}
	delete(r.conns, pid)
	r.idle[pid] = true
	for pid := range r.idle {
		if len(r.idle) <= maxIdle {
			return
		}
		delete(r.idle, pid)
		delete(r.names, pid)
		delete(r.programs.names, pid)
		delete(r.readers, pid)
		if r.onDropped != nil {
			r.onDropped(pid)
		}
	}
}

// makeRoom drops a connection whose end was never reported (events were lost). It is any of them: one that is still
// used is learned again.
func (r *recorder) makeRoom() {
	for client := range r.clients {
		r.dropConn(client)
		r.dropped++
		return
	}
}

// put adds to a map by connection, and makes room in one that is full as above.
func put[K comparable, V any](r *recorder, m map[K]V, conn K, v V) {
	if _, known := m[conn]; !known && len(m) >= r.maxConns() {
		for other := range m {
			delete(m, other)
			r.dropped++
			break
		}
	}
	m[conn] = v
}
