package caller_test

import (
	"fmt"
	"testing"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/recording"
)

// TestLeftOutConns: a connection that the tap did not follow all the time is no evidence of idleness, but its calls are
// calls of its process: three slow ones are three of 1 003, and no pattern.
func TestLeftOutConns(t *testing.T) {
	const node = "10.0.0.1:6379"
	for _, followed := range []bool{false, true} {
		rec := recording.New()
		rec.SetMeta(recording.MetaNodes, `["`+node+`"]`)
		rec.SetMeta(recording.MetaStart, "1000000000")
		rec.SetMeta(recording.MetaEnd, "11000000000")
		closed := func(port, pid int, calls int64) string {
			client := fmt.Sprintf("10.0.0.9:%d", port)
			rec.Event(recording.Event{
				TimeNs: 10e9, Source: recording.SourceTap, Subject: node, Kind: recording.KindClose,
				Detail: recording.Detail(recording.ConnDetail{
					Client: client, PID: pid, Comm: "app", Side: recording.Client, Calls: calls, AgeNs: 9e9,
				}),
			})
			return recording.ConnPrefix + client
		}
		closed(1001, 7, 3)
		leftOut := []string{closed(1002, 7, 1000), closed(1003, 8, 1000)}
		if !followed {
			for _, conn := range leftOut {
				rec.Snapshot(recording.Snapshot{
					TimeNs: 3e9, Source: recording.SourceTap, Subject: conn, Name: recording.SnapshotLeftOut,
					Body: "{}",
				})
			}
		}
		for i := range int64(3) {
			rec.Call(recording.Call{
				ID: i + 1, Source: recording.SourceTap, Conn: "10.0.0.9:1001", Op: "GET", Node: node, Client: "app[7]",
				StartNs: (4 + i) * 1e9, IntendedNs: (4 + i) * 1e9, EndNs: (4+i)*1e9 + 8e6, Side: recording.Client,
			})
		}
		rec.Index()
		n := facts.New(rec).Nodes[0]
		callers := caller.Callers(n)
		conns, calls := 0, map[int]int64{}
		for _, c := range callers {
			conns += len(c.Conns)
			calls[c.PID] += c.AppCalls()
		}
		wantConns, want8 := 1, int64(0)
		if followed {
			wantConns, want8 = 3, 1000
		}
		if conns != wantConns || calls[7] != 1003 || calls[8] != want8 {
			t.Errorf("followed %v: %d connections, calls %v", followed, conns, calls)
		}
		if len(n.Ledger.Slow) != 3 || caller.SlowForCaller(n) {
			t.Errorf("followed %v: %d slow calls, a pattern: %v", followed, len(n.Ledger.Slow), caller.SlowForCaller(n))
		}
	}
}
