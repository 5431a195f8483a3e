//go:build linux

package tap

import (
	"slowpath/internal/recording"
)

// dnsQuery is what a process asked a name server on one socket, until it is answered.
type dnsQuery struct {
	process
	from  int64 // the first query
	last  int64 // the last
	sends int
	done  bool // there was an answer: what is sent next is another query
}

// Bounds of DNS queries.
const (
	// minDNSWait: a name server in the same network answers within a millisecond; shorter waits are not recorded.
	minDNSWait = int64(1e6)
	// dnsGivenUp: no resolver waits so long without repeating a query (resolv.conf(5): timeout 5 s by default, at most
	// 30 s).
	dnsGivenUp = int64(31e9)
	// dnsLost: after so long a query without an answer counts as lost, and not as one that is under way.
	dnsLost       = int64(500e6)
	maxDNSQueries = 4096
)

// dns records a query or an answer.
func (r *recorder) dns(e *kernelDnsEvent) {
	now := r.time(e.Now)
	q := r.dnsQueries[e.Sock]
	// the kernel uses the memory of a closed socket again
	if q != nil && (q.pid != int(e.Tgid) || q.done && e.Answer == 0) {
		if !q.done {
			r.emitDNS(q, q.last, false)
		}
		q = nil
	}
	switch {
	case e.Answer == 0 && q == nil:
		if len(r.dnsQueries) < maxDNSQueries {
			r.dnsQueries[e.Sock] = &dnsQuery{
				process: process{pid: int(e.Tgid), comm: comm(e.Comm)}, from: now, last: now,
				sends: 1,
			}
		}
	case e.Answer == 0:
		q.last = now
		q.sends++
	case q != nil: // of two queries at once, for IPv4 and IPv6, each has an answer
		q.done, q.last = true, now
		if now-q.from >= minDNSWait {
			r.emitDNS(q, now, true)
		}
	}
	r.endRepeated(e, now)
}

// endRepeated ends the lost queries of the same process on other sockets: Go's resolver repeats a query on a new one.
func (r *recorder) endRepeated(e *kernelDnsEvent, now int64) {
	if e.Answer != 0 {
		return
	}
	for sock, q := range r.dnsQueries {
		if sock != e.Sock && q.pid == int(e.Tgid) && !q.done && now-q.last >= dnsLost {
			r.emitDNS(q, now, false)
			delete(r.dnsQueries, sock)
		}
	}
}

// expireDNS drops queries that nobody waits for any more.
func (r *recorder) expireDNS(now int64) {
	for sock, q := range r.dnsQueries {
		if q.done && now-q.last > dnsLost || now-q.last > dnsGivenUp {
			if !q.done && (now != endOfWatch || r.Clock.Now()-q.from >= dnsLost) {
				r.emitDNS(q, min(now, r.Clock.Now()), false)
			}
			delete(r.dnsQueries, sock)
		}
	}
}

func (r *recorder) emitDNS(q *dnsQuery, to int64, answered bool) {
	r.Sink.Event(recording.Event{
		TimeNs: q.from, DurationNs: to - q.from, Source: recording.SourceTap,
		Subject: recording.ProcessPrefix + itoa(q.pid), Kind: recording.KindDNSQuery,
		Detail: recording.Detail(recording.DNSQueryDetail{Comm: q.comm, Queries: q.sends, Answered: answered}),
	})
}
