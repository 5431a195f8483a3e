package cause_test

import (
	"fmt"
	"testing"

	"slowpath/internal/recording"
)

// aged is a pool of 24 connections in steady use, opened together; each is replaced when it is a second old, or as
// change says.
func aged(change func(i int, l *life)) edge {
	e := newEdge("redis 7.0.15")
	for i := range 24 {
		at := edgeMs * int64(10+i%3)
		for gen := range 8 {
			l := life{
				port: 5000 + 100*gen + i, from: at, to: at + 1000*edgeMs + int64(i%5)*edgeMs, work: 12 + int64(i%4),
				ops: greets, trips: 6, callNs: callNs, idleNs: int64(i%7) * edgeMs,
			}
			if change != nil {
				change(i, &l)
			}
			e.conn(l)
			at = l.to + edgeMs/10
		}
	}
	return e
}

// expiring is a pool of 24 connections that were made some seconds before the watch, and are replaced after one second
// of it.
func expiring(seconds int64) edge {
	e := newEdge("redis 7.0.15")
	for i := range 24 {
		at := second + int64(i%5)*edgeMs
		e.Snapshot(recording.Snapshot{
			Source: recording.SourceServer, Subject: edgeNode, Name: "clients",
			Body: fmt.Sprintf(`{"addr":%q,"age":%d}`, address(5000+i), seconds),
		})
		e.conn(life{port: 5000 + i, to: at, work: 12 + int64(i%4), callNs: callNs})
		e.conn(life{
			port: 6000 + i, from: at + edgeMs, to: at + edgeMs*int64(100+50*i), work: 1, ops: greets, trips: 6,
			callNs: callNs, waiting: 1,
		})
	}
	return e
}

func TestPoolLifetimeRedial(t *testing.T) {
	explainEdge(t, find("pool-lifetime-redial"), []edgeCase{
		{
			name: "connections of the same age, replaced at once", rec: aged(nil), found: true,
			evidence: "each 1 s to 1 s old, between calls: a maximum age of about 1 s", fix: "ConnMaxLifetime",
		},
		{name: "together", rec: aged(nil), found: true, evidence: "they expire together: up to 24"},
		{
			name: "by their ages in CLIENT LIST", rec: expiring(30), found: true,
			evidence: "a maximum age of about 31 s", fix: "ConnMaxLifetime",
		},
		{name: "too young for their ages in CLIENT LIST", rec: expiring(3)},
		{name: "of all ages", rec: aged(func(i int, l *life) { l.to += int64(i) * 60 * edgeMs })},
		{name: "one call each", rec: aged(func(_ int, l *life) { l.work = 1 })},
		{name: "idle for the same time", rec: aged(func(_ int, l *life) { l.idleNs = 900 * edgeMs })},
		{name: "not replaced", rec: aged(func(_ int, l *life) { l.to -= 500 * edgeMs; l.from += 100 * edgeMs })},
		{name: "jobs", rec: jobs()},
		{name: "a pool with an idle limit", rec: reaped(nil)},
		{name: "a pool with too many", rec: overflowing(nil)},
	})
}
