package account

import (
	"testing"

	"slowpath/internal/recording"
)

// countedCase is one step of commandstats per second: calls and microseconds of a command since the start.
func countedCase(command string, steps ...[2]float64) *recording.Recording {
	r := recording.New()
	for s, v := range append([][2]float64{{0, 0}}, steps...) {
		at := int64(s) * 1e9
		r.Sample(recording.Sample{TimeNs: at, Source: recording.SourceServer, Subject: node, Name: "cmdstat_" +
			command + ".calls", Value: v[0]})
		r.Sample(recording.Sample{TimeNs: at, Source: recording.SourceServer, Subject: node, Name: "cmdstat_" +
			command + ".usec", Value: v[1]})
		r.Event(recording.Event{
			TimeNs: at - 1e6, DurationNs: 1e6, Source: recording.SourceServer, Subject: node,
			Kind: recording.KindPoll,
		})
	}
	r.Index()
	return r
}

func TestCommandstatsSuspects(t *testing.T) {
	for _, tt := range []struct {
		name   string
		rec    *recording.Recording
		wantNs int64 // of the first suspect, 0: none
		count  int
	}{
		{"long on average", countedCase("keys", [2]float64{2, 100e3}), 50e6, 2},
		{"short", countedCase("get", [2]float64{1e5, 200e3}), 0, 0},
		{"one long among many short", countedCase("smembers", [2]float64{1000, 5e3}, [2]float64{2000, 75e3}), 60e6, 1},
		{"one slow DEL among many", countedCase("del", [2]float64{1000, 2e3}, [2]float64{2000, 54e3}), 48e6, 1},
		{"SET is too common for that", countedCase("set", [2]float64{1000, 2e3}, [2]float64{2000, 54e3}), 0, 0},
		{"the watch's own INFO", countedCase("info", [2]float64{1, 60e3}), 0, 0},
		{"INFO of others", countedCase("info", [2]float64{5002, 250e3}), 49980, 5001},
		{"EXEC", countedCase("exec", [2]float64{3, 36e3}), 12e6, 3},
	} {
		got := commandstatsSuspects(tt.rec, node, nil)
		switch {
		case tt.wantNs == 0 && len(got) > 0:
			t.Errorf("%s: %+v", tt.name, got)
		case tt.wantNs == 0:
		case len(got) == 0:
			t.Errorf("%s: nothing", tt.name)
		case got[0].DurationNs != tt.wantNs || got[0].Count != tt.count:
			t.Errorf("%s: %d ns, %d times; want %d, %d", tt.name, got[0].DurationNs, got[0].Count, tt.wantNs, tt.count)
		}
	}
}
