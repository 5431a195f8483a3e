package cause_test

import (
	"testing"

	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
)

// collectedAt loses a connection every 200 ms, as leaking does, in a process with a garbage collector that closes what
// is lost at those moments.
func collectedAt(change func(i int, l *life), moments ...int64) edge {
	return leaking(func(i int, l *life) {
		last := l.from + int64(10+i%4*10)*edgeMs // of its calls
		for _, at := range moments {
			if last < at {
				l.to = at + int64(i%20)*edgeMs/10
				l.idleNs = l.to - last
				break
			}
		}
		if change != nil {
			change(i, l)
		}
	})
}

// objects are jobs side by side with a client object each, of four connections that end together: each job takes 700
// ms, a new one begins every 200 ms.
func objects() edge {
	e := newEdge("redis 7.0.15").used(app, "app", 4999, 20, 0.1)
	for j := range 36 {
		for k := range 4 {
			from := int64(j+1)*200*edgeMs + int64(k)*10*edgeMs
			end := int64(j+1)*200*edgeMs + 700*edgeMs
			e.conn(life{
				port: 5000 + 4*j + k, from: from, to: end + int64(k)*edgeMs/10, work: 3 + int64(k), ops: greets,
				trips: 2, callNs: 8 * edgeMs, idleNs: 20*edgeMs + int64(k)*150*edgeMs,
			})
		}
	}
	return e
}

// TestSweeps: what a garbage collector closes together was lost. What a pool or an application closes was not.
func TestSweeps(t *testing.T) {
	explainEdge(t, find("pool-leak"), []edgeCase{
		{
			name: "T2: swept twice", rec: collectedAt(nil, 3*second, 5500*edgeMs), found: true,
			evidence: "a garbage collector does", fix: "defer conn.Close()",
		},
		{
			name: "T2: seen from the server only", rec: collectedAt(func(_ int, l *life) { l.remote = true }, 3*second),
			found: true, evidence: "closed",
		},
		{name: "the same idle time each: a reaper of another pool", rec: collectedAt(func(_ int, l *life) {
			if l.to > 0 {
				l.idleNs = 480*edgeMs + l.idleNs%(20*edgeMs)
			}
		}, 2*second, 3*second, 4*second, 5*second, 6*second, 7*second)},
		{name: "closed right after their calls", rec: collectedAt(func(_ int, l *life) {
			if l.to > 0 {
				l.to, l.idleNs = l.from+40*edgeMs, edgeMs
			}
		}, 9*second)},
		{name: "the server's end closed them", rec: collectedAt(func(_ int, l *life) { l.by = recording.Server },
			9*second)},
		{name: "client objects that end with their jobs", rec: objects()},
		{name: "too few kept", rec: overflowing(nil)},
	})
	swept := func() edge { return collectedAt(nil, 3*second, 5500*edgeMs) }
	explainEdge(t, find("pool-maxidle-churn"), []edgeCase{
		{name: "swept: no pool put them away", rec: swept()},
		{name: "jobs with objects of their own", rec: objects()},
	})
	explainEdge(t, find("pool-idle-reap-redial"), []edgeCase{{name: "swept: no limit", rec: swept()}})
	tt := swept()
	tt.Index()
	if d := verdict.Diagnose(tt.Recording, "test"); len(d.Findings) == 0 || d.Findings[0].Cause != "pool-leak" {
		t.Errorf("%+v, want pool-leak first", d.Findings)
	}
}
