package facts

import (
	"math"
	"testing"

	"slowpath/internal/recording"
)

// TestOwnCost: the CPU time of the server's process is divided by the number of commands and connections.
func TestOwnCost(t *testing.T) {
	const node, second = "10.0.0.5:6379", int64(1e9)
	build := func(others float64) (OwnCost, bool) {
		r := recording.New()
		r.SetMeta(recording.MetaTarget, node)
		for s := range int64(11) {
			for name, perSecond := range map[string]float64{
				"used_cpu_user": 0.002, "used_cpu_sys": 0.003, "total_connections_received": 1,
				"total_commands_processed": 57 + others, "self.polls": 1,
			} {
				r.Sample(recording.Sample{
					TimeNs: s * second, Source: recording.SourceServer, Subject: node, Name: name,
					Value: perSecond * float64(s),
				})
			}
		}
		for i := range int64(510) { // 50 kept calls and one fresh connection each second
			conn := "kept"
			if i%51 == 0 {
				conn = "fresh"
			}
			at := i * 10 * second / 510
			r.Call(recording.Call{
				Source: recording.SourceProbe, Conn: conn, Op: "PING", Node: node, Slot: -1,
				IntendedNs: at, StartNs: at, EndNs: at + 1000,
			})
		}
		r.Index()
		return New(r).Nodes[0].OwnCost()
	}
	if c, ok := build(0); !ok || math.Abs(c.Ns-50e6) > 1 || c.Share != 1 || c.Seconds != 10 {
		t.Errorf("an idle server works for slowpath only, 50 ms in 10 s: %+v", c)
	}
	if c, _ := build(59.5); math.Abs(c.Share-0.5) > 1e-6 || math.Abs(c.Ns-25e6) > 1000 {
		t.Errorf("another caller makes as many calls: %+v", c)
	}
	r := recording.New()
	r.SetMeta(recording.MetaTarget, node)
	r.Index()
	if _, ok := New(r).Nodes[0].OwnCost(); ok {
		t.Error("without INFO nothing is known")
	}
}
