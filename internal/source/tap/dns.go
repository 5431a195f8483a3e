//go:build linux

package tap

import (
	"net/netip"

	"slowpath/internal/recording"
)

// dnsQuery is what a thread asked a DNS server on one socket, until it is answered.
type dnsQuery struct {
	process
	tid     uint32
	server  netip.Addr
	since   int64 // when it was first asked: before from where this repeats a lost query
	from    int64 // the first query on this socket
	last    int64 // the last
	sends   int
	asked   int   // of sends, those at about the same time as the last: two, for IPv4 and IPv6
	sent    int64 // and when
	answers int
	done    bool // there was an answer: what is sent next is another query
}

// dnsSocket is a socket for as long as it is open: another one may have its memory later.
type dnsSocket struct {
	sock uint64
	port uint16
}

func (e *kernelDnsEvent) socket() dnsSocket { return dnsSocket{e.Sock, e.Port} }

// Bounds of DNS queries.
const (
	// minDNSWait: a name server in the same network answers within a millisecond; shorter waits are not recorded.
	minDNSWait = int64(1e6)
	// dnsGivenUp: no resolver waits so long without repeating a query (resolv.conf(5): timeout 5 s by default, at most
	// 30 s).
	dnsGivenUp = int64(31e9)
	// dnsLost: after so long a query without an answer counts as lost, and not as one that is under way.
	dnsLost = int64(500e6)
	// dnsTimeoutUnit: the option timeout of resolv.conf(5) is in whole seconds, for glibc and Go.
	dnsTimeoutUnit = int64(1e9)
	// dnsTimerEarly is by how much a timer may have begun before its query was sent.
	dnsTimerEarly = int64(1e6)
	// dnsTimerLate is how late a thread may repeat it: within that time other queries hardly ever begin by chance.
	dnsTimerLate = int64(20e6)

	maxDNSQueries = 4096
	maxDNSServers = 1024
)

// dns records a query or an answer.
func (r *recorder) dns(e *kernelDnsEvent) {
	now := r.time(e.Now)
	q := r.dnsQueries[e.socket()]
	since := now
	if q != nil && (q.pid != int(e.Tgid) || q.done && e.Answer == 0) {
		switch {
		case !q.done:
			r.emitDNS(q, q.last, false)
		case q.pid == int(e.Tgid) && q.answers < q.asked && timedOut(now-q.sent): // one of two
			r.emitDNS(q, now, false)
			since = q.since
		}
		q = nil
	}
	switch {
	case e.Answer == 0 && q == nil:
		if len(r.dnsQueries) < maxDNSQueries {
			r.dnsQueries[e.socket()] = &dnsQuery{
				process: process{pid: int(e.Tgid), comm: comm(e.Comm)}, tid: e.Tid,
				server: netip.AddrFrom16(e.Server).Unmap(), since: min(since, r.endRepeated(e, now)), from: now,
				last: now, sends: 1, asked: 1, sent: now,
			}
		}
	case e.Answer == 0:
		if q.asked++; now-q.sent >= dnsLost {
			q.asked = 1
		}
		q.last, q.sent = now, now
		q.sends++
		r.endRepeated(e, now)
	case q != nil: // of two queries at once, for IPv4 and IPv6, each has an answer
		q.done, q.last = true, now
		q.answers++
		r.readBy(q, e.Tid)
		if r.answeredAgain(q.server) || q.since < q.from || now-q.from >= minDNSWait {
			r.emitDNS(q, now, true)
		}
	}
}

// timedOut reports whether a query was sent that long after another one because that had no answer in time.
func timedOut(ns int64) bool {
	return ns >= dnsTimeoutUnit-dnsTimerEarly && (ns+dnsTimerEarly)%dnsTimeoutUnit <= dnsTimerEarly+dnsTimerLate
}

// endRepeated ends the lost queries on other sockets, and gives since when what they ask is asked, for a query that
// repeats them; else now. They are those of the same thread, in which the resolver of glibc waits: it asks something
// else only after it has given up. Goroutines go on in any thread, but repeat a query just when its time is up.
func (r *recorder) endRepeated(e *kernelDnsEvent, now int64) (since int64) {
	since = now
	anyThread := r.anyThreadReads[int(e.Tgid)]
	for socket, q := range r.dnsQueries {
		if socket == e.socket() || q.pid != int(e.Tgid) || q.done || now-q.last < dnsLost {
			continue
		}
		ended, up := now, timedOut(now-q.last)
		switch {
		case !anyThread && q.tid != e.Tid || anyThread && !up:
			continue
		case up:
			since = min(since, q.since)
		default: // it was given up at some time before
			ended = q.last + dnsLost
		}
		r.emitDNS(q, ended, false)
		delete(r.dnsQueries, socket)
	}
	return since
}

// readBy notes programs in which another thread reads an answer than the one that asked: as goroutines do.
func (r *recorder) readBy(q *dnsQuery, tid uint32) {
	if q.tid == tid {
		return
	}
	if len(r.anyThreadReads) >= maxDNSQueries {
		clear(r.anyThreadReads)
	}
	r.anyThreadReads[q.pid] = true
}

// expireDNS drops queries that nobody waits for any more.
func (r *recorder) expireDNS(now int64) {
	for sock, q := range r.dnsQueries {
		wait := dnsGivenUp
		if q.done && q.answers >= q.asked {
			wait = dnsLost
		}
		if now-q.last > wait {
			if ended := q.last + dnsLost; !q.done && now != endOfWatch { // it was given up at some time before
				r.emitDNS(q, ended, false)
			} else if !q.done && r.Clock.Now() >= ended {
				r.emitDNS(q, r.Clock.Now(), false)
			}
			delete(r.dnsQueries, sock)
		}
	}
}

// dnsServer is what is known of a DNS server.
type dnsServer struct {
	answers int
	lost    bool // a query since the last answer that was recorded
}

// dnsServerOf is what is known of a DNS server; nil where there are too many.
func (r *recorder) dnsServerOf(address netip.Addr) *dnsServer {
	s := r.dnsServers[address]
	if s == nil && len(r.dnsServers) < maxDNSServers {
		s = &dnsServer{}
		r.dnsServers[address] = s
	}
	return s
}

// answeredAgain counts an answer, and reports whether it is the first after a lost query: so that a recording shows of
// each server that lost one whether it answers.
func (r *recorder) answeredAgain(server netip.Addr) bool {
	s := r.dnsServerOf(server)
	if s == nil {
		return false
	}
	s.answers++
	return s.lost
}

func (r *recorder) emitDNS(q *dnsQuery, to int64, answered bool) {
	d := recording.DNSQueryDetail{
		Comm: q.comm, TID: int(q.tid), Queries: q.sends, Answers: q.answers, Answered: answered,
	}
	if s := r.dnsServerOf(q.server); s != nil {
		s.lost = !answered
		d.Server, d.ServerAnswers = q.server.String(), s.answers
	}
	r.Sink.Event(recording.Event{
		TimeNs: q.from, DurationNs: to - q.from, Source: recording.SourceTap,
		Subject: recording.ProcessPrefix + itoa(q.pid), Kind: recording.KindDNSQuery,
		Detail: recording.Detail(d),
	})
}
