package cause_test

import (
	"fmt"
	"slices"
	"testing"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
)

// lookedUp adds a DNS query of a process.
func (e edge) lookedUp(pid int, from, ns int64, answered bool) edge {
	e.Event(recording.Event{
		TimeNs: from, DurationNs: ns, Source: recording.SourceTap, Subject: fmt.Sprintf("%s%d",
			recording.ProcessPrefix, pid), Kind: recording.KindDNSQuery,
		Detail: recording.Detail(recording.DNSQueryDetail{Comm: "app", Queries: 1, Answered: answered}),
	})
	return e
}

// often is how often a thread asks.
const often = 300 * edgeMs

// askedOf adds a DNS query of a thread to a server that had given some answers by then.
func (e edge) askedOf(tid int, server string, answers int, from, ns int64, d recording.DNSQueryDetail) edge {
	d.Comm, d.TID, d.Server, d.ServerAnswers = "app", tid, server, answers
	e.Event(recording.Event{
		TimeNs: from, DurationNs: ns, Source: recording.SourceTap, Subject: fmt.Sprintf("%s%d",
			recording.ProcessPrefix, app), Kind: recording.KindDNSQuery, Detail: recording.Detail(d),
	})
	return e
}

// askedTwice are threads in turn that look the server's name up, every so often, for a connection. The first DNS server
// does not answer for timeout, the second one does.
func askedTwice(every, timeout int64, answers int, lost recording.DNSQueryDetail) edge {
	e := newEdge("redis 7.0.15")
	for i := range 12 {
		from := int64(i) * every
		end := from + timeout + edgeMs/2
		e.askedOf(100+i%4, "10.0.0.54", answers, from, timeout, lost)
		e.askedOf(100+i%4, "10.0.0.53", i+1, from+timeout, edgeMs/2, recording.DNSQueryDetail{
			Queries: 2, Answers: 2, Answered: true,
		})
		e.conn(life{port: 5000 + i, from: end + dialNs + edgeMs/10, work: 2, callNs: edgeMs})
	}
	return e
}

// named are connections of two calls each, and the time of the DNS query before each dial.
func named(pid int, ns, gap int64) edge {
	e := newEdge("redis 7.0.15")
	for i := range 36 {
		at := int64(i+1) * 200 * edgeMs
		e.conn(life{port: 5000 + i, from: at, to: at + 20*edgeMs, work: 2, callNs: edgeMs, idleNs: edgeMs})
		end := at - dialNs - gap
		e.lookedUp(pid, end-ns, ns-edgeMs/4, true).lookedUp(pid, end-ns+edgeMs/10, ns-edgeMs/10, true) // IPv6 and IPv4
	}
	return e
}

func TestDNSSlow(t *testing.T) {
	lost := newEdge("redis 7.0.15").used(app, "app", 4999, 50, 0.05)
	for i := range 2 {
		at := int64(i) * 5 * second / 2
		lost.lookedUp(app, at, 2*second, false).lookedUp(app, at+2*second, edgeMs, true)
		lost.conn(life{port: 5000 + i, from: at + 2*second + edgeMs + dialNs, work: 5, callNs: edgeMs})
	}
	silent := recording.DNSQueryDetail{Queries: 2}
	own := newEdge("redis 7.0.15").kept(edgeMs/10, 0, 0)
	always := newEdge("redis 7.0.15").kept(edgeMs/10, 0, 0).info(map[string]float64{
		"total_connections_received": 200,
		"total_commands_processed":   1000,
	})
	kept := newEdge("redis 7.0.15").kept(edgeMs/10, 0, 0).info(map[string]float64{
		"total_connections_received": 10,
		"total_commands_processed":   10_000,
	})
	for i := range int64(10) {
		at, ns := i*900*edgeMs, edgeMs/2
		if i%3 == 0 {
			ns = 300 * edgeMs
		}
		fresh := func(e edge, ns int64) {
			e.call("fresh", at, ns+edgeMs/4, recording.Segment{
				Actor: account.App, State: account.Dial, FromNs: at,
				ToNs: at + ns, Culprit: "dns",
			})
		}
		fresh(own, ns)
		fresh(always, 40*edgeMs)
		fresh(kept, 40*edgeMs)
	}
	explainEdge(t, find("dns-slow"), []edgeCase{
		{
			name: "T2: each dial after a DNS query of 40 ms", rec: named(app, 40*edgeMs, edgeMs/10), found: true,
			evidence: "36 connections of app[100] began with a DNS query", fix: "ndots:1",
		},
		{name: "T2: DNS requests get lost", rec: lost, found: true, evidence: "2 DNS requests without an " +
			"answer within 2 s", fix: "timeout:1 attempts:2"},
		{
			name: "T2: threads ask a DNS server that does not answer", rec: askedTwice(often, second, 0, silent),
			found: true, evidence: "all of DNS server 10.0.0.54, which answered nobody on the callers' host",
			fix: "Remove the line nameserver 10.0.0.54, or put it below nameserver 10.0.0.53: it answered none of 12",
		},
		{
			name:  "T2: a thread asks just when another's time is up",
			rec:   askedTwice(second+edgeMs/5, second, 0, silent),
			found: true, evidence: "the answers took 1 s to 1 s",
		},
		{
			name: "T2: and five seconds for it", rec: askedTwice(often, 5*second, 0, silent), found: true,
			fix: "Each request without an answer takes 5 s now",
		},
		{
			name: "T2: one of two queries gets lost",
			rec:  askedTwice(often, second, 3, recording.DNSQueryDetail{Queries: 2, Answers: 1}), found: true,
			evidence: "12 of them had one answer to two questions", fix: "single-request-reopen",
		},
		{name: "T0: the probe waits for its own", rec: own, found: true, evidence: "4 slow calls of the " +
			"probe", against: "whether the callers"},
		{
			name: "T0: and always does, as callers that open connections must", rec: always, found: true,
			evidence: "waits 40 ms for the lookup of the server's name",
		},
		{name: "T0: which callers do once", rec: kept},
		{name: "another process sends DNS queries", rec: named(app+1, 40*edgeMs, edgeMs/10)},
		{name: "DNS queries for something else, long before the dials", rec: named(app, 40*edgeMs, 100*edgeMs)},
		{name: "a quick DNS server", rec: named(app, edgeMs*13/10, edgeMs/10).used(app, "app", 4999, 2000, 0.5)},
		{name: "connections without DNS queries", rec: jobs()},
		{name: "nothing", rec: newEdge("redis 7.0.15").kept(edgeMs/10, 0, 0)},
	})
}

// TestLookupsComeFirst: new connections cost less than the DNS queries before them.
func TestLookupsComeFirst(t *testing.T) {
	rec := overflowing(nil)
	for i := range 200 {
		end := int64(i+1)*10*edgeMs - dialNs - edgeMs/10
		rec.lookedUp(app, end-60*edgeMs, 60*edgeMs, true)
	}
	rec.Index()
	d := verdict.Diagnose(rec.Recording, "test")
	if len(d.Findings) == 0 || d.Findings[0].Cause != "dns-slow" {
		t.Errorf("%+v", d.Findings)
	}
}

// TestDNSFixesWithEvidence: no cache and no other sockets against a DNS server that does not answer at all, and no
// shorter timeout where it is as short as it can be.
func TestDNSFixesWithEvidence(t *testing.T) {
	for _, tt := range []struct {
		name string
		rec  edge
		want []string
	}{
		{
			"a DNS server that does not answer", askedTwice(often, second, 0, recording.DNSQueryDetail{Queries: 2}),
			[]string{"leave-silent-dns-server", "keep-connections"},
		},
		{
			"and five seconds for it", askedTwice(often, 5*second, 0, recording.DNSQueryDetail{Queries: 2}),
			[]string{"leave-silent-dns-server", "ask-again-sooner", "keep-connections"},
		},
		{
			"one that loses some", askedTwice(often, second, 3, recording.DNSQueryDetail{Queries: 2}),
			[]string{"keep-connections", "dns-cache", "faster-dns-server"},
		},
		{
			"one that loses one of two", askedTwice(often, second, 3, recording.DNSQueryDetail{Queries: 2, Answers: 1}),
			[]string{"keep-connections", "own-socket-per-query", "dns-cache", "faster-dns-server"},
		},
		{
			"a slow one", named(app, 40*edgeMs, edgeMs/10),
			[]string{"keep-connections", "dns-cache", "faster-dns-server"},
		},
	} {
		tt.rec.built("go-redis", "9.7.0").Index()
		var got []string
		for _, f := range verdict.Diagnose(tt.rec.Recording, "test").Findings {
			for _, s := range f.FixSteps {
				if f.Cause == "dns-slow" {
					got = append(got, s.ID)
				}
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
