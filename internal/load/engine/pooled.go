//go:build linux

package engine

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"time"

	"slowpath/internal/load/workload"
	"slowpath/internal/wire/session"
	"slowpath/internal/wire/target"
)

// pooledConn is a connection of the pool. Only its borrower uses it.
type pooledConn struct {
	mu       sync.Mutex   // of conn, which the end of the load interrupts
	conn     *target.Conn // nil: not connected; the borrower connects it
	connects int64        // how often it was connected
	attempts int          // failed ones to connect, since the last success
	scan     scanner
	in, out  []byte
	carry    int // bytes of in that are not consumed
}

const pooledBufferBytes = 16 << 10

// dialPooled opens a connection of the pool.
func (r *run) dialPooled(ctx context.Context, p *pooledConn) dialed {
	ctx, cancel := context.WithTimeout(ctx, r.DialTimeout)
	defer cancel()
	d := dialed{start: r.Clock.Now()}
	s, opening, err := session.Open(ctx, r.Target, clientName)
	d.opening, d.err, d.end = opening, err, r.Clock.Now()
	if err != nil {
		p.attempts++
		return d
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conn = s.Detach()
	p.connects++
	p.attempts, p.carry, p.scan = 0, 0, scanner{keep: r.Verify}
	_ = p.conn.SetDeadline(time.Time{}) // was set for the login
	return d
}

func (p *pooledConn) connected() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.conn != nil
}

// drop closes the connection.
func (p *pooledConn) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn != nil {
		p.conn.Close()
		p.conn = nil
	}
}

// interrupt ends a call that waits for its reply, with os.ErrDeadlineExceeded.
func (p *pooledConn) interrupt() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn != nil {
		_ = p.conn.SetDeadline(time.Unix(1, 0))
	}
}

// callResult is the outcome of a call.
type callResult struct {
	errors, misses int64
	codes          map[string]int64 // of the errors; nil without
	reads, bytes   int64
	mismatch       error
}

// call sends a request and reads its replies.
func (p *pooledConn) call(r *run, stream *workload.Stream, q workload.Request) (a callResult, err error) {
	if r.Timeout > 0 {
		_ = p.conn.SetDeadline(time.Now().Add(r.Timeout))
	}
	if _, err := p.conn.Write(p.out); err != nil {
		return a, err
	}
	for left := q.Replies; left > 0; {
		n, done, err := p.scan.next(p.in[:p.carry])
		if err != nil {
			return a, err
		}
		if p.scan.keep {
			n = p.scan.whole(p.in, n, done)
		}
		if done && p.scan.kind != '>' {
			a.addReply(r, stream, q, &p.scan)
			left--
		}
		p.carry = copy(p.in, p.in[n:p.carry])
		if done {
			continue
		}
		if p.carry == len(p.in) {
			p.in = append(p.in, make([]byte, max(len(p.in), pooledBufferBytes))...)
		}
		n, err = p.conn.Read(p.in[p.carry:])
		a.reads++
		a.bytes += int64(n)
		p.carry += n
		if err != nil && n == 0 {
			return a, err
		}
	}
	return a, nil
}

// addReply adds one reply.
func (a *callResult) addReply(r *run, stream *workload.Stream, q workload.Request, s *scanner) {
	switch {
	case s.line != nil:
		if a.codes == nil {
			a.codes = map[string]int64{}
		}
		a.errors++
		code, _, _ := strings.Cut(string(s.line), " ")
		a.codes[code]++
	case s.null && r.Ops()[q.Op].Reads:
		a.misses++
	}
	if s.keep && a.mismatch == nil {
		a.mismatch = stream.Check(q, s.reply)
	}
}

// timedOut: the error is that of a deadline.
func timedOut(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }
