package account

import (
	"testing"

	"slowpath/internal/recording"
)

func TestSuspectsCheckedWithTheHost(t *testing.T) {
	for _, tt := range []struct {
		name          string
		command       string
		states        []string // 20 ms each, one after the other
		rec           *recording.Recording
		busy, stopped bool
	}{
		{"at work", "KEYS", []string{"busy", "busy", "busy", "busy"}, recording.New(), true, false},
		{"throttled", "LRANGE", []string{"throttled", "throttled", "throttled", "busy"}, recording.New(), false, true},
		{
			"shares its CPU", "KEYS",
			[]string{"busy", "run-queue", "run-queue", "run-queue"},
			recording.New(), true,
			true,
		},
		{"always so long", "KEYS", []string{"run-queue", "run-queue", "run-queue", ""}, countedCase("keys",
			[2]float64{3, 200e3}), false, false},
		{"usually short", "LTRIM", []string{"busy", "run-queue", "run-queue", "run-queue"}, countedCase("ltrim",
			[2]float64{1000, 90e3}), false, true},
		{"not watched", "KEYS", nil, recording.New(), false, false},
	} {
		for i, kind := range tt.states {
			if kind != "" {
				state(tt.rec, kind, ms(float64(100+20*i)), ms(float64(120+20*i)))
			}
		}
		tt.rec.Index()
		ss := []Suspect{{
			Kind: KindCommand, Source: "slowlog", Node: node, Command: tt.command, FromNs: 0, ToNs: 1e9,
			DurationNs: 80e6, Count: 1,
		}}
		checkWithHost(tt.rec, ss)
		if ss[0].Busy != tt.busy || ss[0].Stopped != tt.stopped {
			t.Errorf("%s: busy %v, stopped %v", tt.name, ss[0].Busy, ss[0].Stopped)
		}
	}
}
