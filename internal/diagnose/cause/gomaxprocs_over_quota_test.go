package cause_test

import (
	"fmt"
	"testing"

	"slowpath/internal/recording"
)

// overQuotaCase is a process in a quota: so many of its threads are throttled together, in slow calls.
func overQuotaCase(cores float64, together int, runtime string) edge {
	e := newEdge("redis 7.0.15").used(app, "app", 4000, 500, 0.9).all("GET", 5000, edgeMs)
	for i := range 20 {
		at := second + int64(i)*100*edgeMs
		e.slowCall(at, 60*edgeMs, 4000+i%5, recording.Segment{State: recording.Throttled})
		for tid := range together {
			e.Event(recording.Event{
				TimeNs: at, DurationNs: 60 * edgeMs, Source: recording.SourceTap,
				Subject: fmt.Sprintf("%s%d", recording.ProcessPrefix, app), Kind: recording.KindThrottled,
				Detail: recording.Detail(recording.ThreadDetail{
					TID: app + tid, Share: 1, Comm: "app", Cgroup: "/pod",
					Cores: cores,
				}),
			})
		}
	}
	if runtime != "" {
		e.runtime(runtime)
	}
	e.Sample(recording.Sample{
		Source: recording.SourceHost, Subject: recording.SubjectMachine, Name: "cpu.count",
		Value: 16,
	})
	return e
}

func TestGomaxprocsOverQuota(t *testing.T) {
	const heeds, old, set, jvm = `{"go":"go1.26.1","heeds_quota":true}`,
		`{"go":"go1.22.4","heeds_quota":false,"why":"go1.22.4"}`, `{"go":"go1.22.4","procs":4,"procs_by":"GOMAXPROCS"}`,
		`{"jvm":true,"heeds_quota":true}`
	explainEdge(t, find("gomaxprocs-over-quota"), []edgeCase{
		{
			name: "T2: sixteen threads for one core", rec: overQuotaCase(1, 16, heeds), found: true,
			evidence: "16.0 of its threads wanted to run", fix: "set GOMAXPROCS to 1",
		},
		{
			name: "T2: of half a core", rec: overQuotaCase(0.5, 10, heeds), found: true,
			against: "even a single thread would be throttled",
		},
		{
			name: "T1: an old Go on a host of 16 CPUs", rec: overQuotaCase(1.5, 3, old), found: true,
			evidence: "uses one thread per CPU of the host, 16", fix: "automaxprocs",
		},
		{
			name: "T1: GOMAXPROCS in its environment", rec: overQuotaCase(1.5, 3, set), found: true,
			evidence: "GOMAXPROCS is 4",
		},
		{name: "a quota that is too small for two threads", rec: overQuotaCase(0.2, 3, heeds)},
		{name: "a quota that has room for them", rec: overQuotaCase(4, 4, heeds)},
		{name: "the workers of a JVM", rec: overQuotaCase(1, 16, jvm)},
		{name: "an unknown program", rec: overQuotaCase(1, 16, "")},
		{name: "not throttled", rec: newEdge("redis 7.0.15").slowCalls(20, 60*edgeMs, recording.RunQueue)},
	})
	explainEdge(t, find("client-cfs-throttled"), []edgeCase{{
		name: "its consequence is still reported",
		rec: overQuotaCase(1, 16,
			heeds), found: true,
	}})
}
