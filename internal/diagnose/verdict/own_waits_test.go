package verdict_test

import (
	"testing"

	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
)

// TestOwnWaitsExcuseTheirTime: what slowpath itself waited for a CPU is no time of the call in which it waited, and
// excuses nothing else: not time in which the server was busy, and no other call.
func TestOwnWaitsExcuseTheirTime(t *testing.T) {
	const (
		node = "127.0.0.1:6379"
		ms   = int64(1e6)
	)
	late := func(at, ns int64) recording.Segment {
		return recording.Segment{Actor: recording.Client, State: recording.RunQueue, FromNs: at, ToNs: at + ns}
	}
	for name, tt := range map[string]struct {
		ownNs  int64 // of each slow call of 30 ms
		served bool  // the server was busy for the rest
		slow   int
		want   string
	}{
		"the server was busy, and slowpath late": {ownNs: 5 * ms, served: true, slow: 40, want: verdict.Inconclusive},
		"nobody saw why, and slowpath was late":  {ownNs: 5 * ms, slow: 40, want: verdict.Inconclusive},
		"slowpath was late for all of it":        {ownNs: 29 * ms, want: verdict.Healthy},
	} {
		t.Run(name, func(t *testing.T) {
			rec := recording.New()
			rec.SetMeta(recording.MetaStart, "0")
			rec.SetMeta(recording.MetaEnd, "10000000000")
			rec.SetMeta(recording.MetaNodes, `["`+node+`"]`)
			for i := range int64(100) {
				at := i * 100 * ms
				c := recording.Call{
					Source: recording.SourceProbe, Conn: "kept", Op: "GET", Node: node, Slot: -1,
					IntendedNs: at, StartNs: at, EndNs: at + ms/5,
				}
				if i%5 < 2 {
					c.StartNs, c.EndNs = at+tt.ownNs, at+30*ms
					segs := []recording.Segment{late(at, tt.ownNs)}
					if tt.served {
						segs = append(segs, recording.Segment{
							Actor: recording.Server, State: recording.Busy, FromNs: c.StartNs, ToNs: c.EndNs,
						})
					}
					rec.Call(c, segs...)
					continue
				}
				rec.Call(c)
			}
			rec.Sample(recording.Sample{
				TimeNs: 1, Source: recording.SourceServer, Subject: node, Name: "uptime_in_seconds", Value: 100,
			})
			rec.Index()
			d := verdict.Diagnose(rec, "test")
			slow := 0
			for _, p := range d.Populations {
				slow += p.SlowCalls
			}
			if d.Verdict != tt.want || slow != tt.slow {
				t.Errorf("%s, %d slow calls, want %s with %d: %s", d.Verdict, slow, tt.want, tt.slow, d.Summary)
			}
		})
	}
}
