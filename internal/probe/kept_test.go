package probe

import (
	"testing"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
	"slowpath/internal/session"
)

// A call that was due while this process was late with the one before it is late by that, not by the server.
func TestLateWithTheCallBefore(t *testing.T) {
	p := &prober{Options: Options{Clock: clock.New()}}
	begin := time.Now()
	at := func(ms int) time.Time { return begin.Add(time.Duration(ms) * time.Millisecond) }
	ns := func(ms int) int64 { return p.Clock.At(at(ms)) }
	var late lateness
	waited := func(due, free, sent, end int) (out [][2]int64) {
		c := recording.Call{IntendedNs: ns(due), StartNs: ns(sent), EndNs: ns(end)}
		for _, s := range p.waits(c, callContext{free: at(free), late: &late}, session.Timing{}) {
			if s.Actor != recording.Client || s.State != recording.RunQueue {
				t.Errorf("%+v", s)
			}
			out = append(out, [2]int64{(s.FromNs - ns(0)) / 1e6, (s.ToNs - ns(0)) / 1e6})
		}
		return out
	}
	for _, tt := range []struct {
		due, free, sent, end int
		want                 [][2]int64
	}{
		{10, 5, 50, 60, [][2]int64{{10, 50}}},            // we were late
		{30, 60, 62, 70, [][2]int64{{30, 50}, {60, 62}}}, // until then with the one before, and then again; from 50 to 60 the server had that
		{40, 70, 70, 80, [][2]int64{{40, 50}, {60, 62}}},
		{65, 80, 80, 90, nil}, // it waited for the server alone
	} {
		got := waited(tt.due, tt.free, tt.sent, tt.end)
		if len(got) != len(tt.want) {
			t.Fatalf("due at %d: %v, want %v", tt.due, got, tt.want)
		}
		for i := range got {
			if got[i] != tt.want[i] {
				t.Errorf("due at %d: %v, want %v", tt.due, got, tt.want)
			}
		}
	}
}
