package account

import (
	"testing"

	"slowpath/internal/recording"
)

// What several sources show of one thing is one suspect.
func TestOneThingIsOneSuspect(t *testing.T) {
	long := func(w recording.ActivityDetail) tap {
		r := tap{base()}
		r.polled()
		r.work(ms(1010), ms(1060), w)
		return r
	}
	step := func(r tap, name string, by float64) {
		for i, v := range []float64{100, 100 + by} {
			r.Sample(recording.Sample{
				TimeNs: ms(float64(900 + i*1000)), Source: recording.SourceServer, Subject: node,
				Name: name, Value: v,
			})
		}
	}
	fork := func(r tap, from, ns int64) {
		r.Event(recording.Event{
			TimeNs: from, DurationNs: ns, Source: recording.SourceServer, Subject: node,
			Kind:   recording.KindFork,
			Detail: recording.Detail(recording.ForkDetail{Why: "rdb", WindowNs: ms(1000)}),
		})
	}
	for _, tt := range []struct {
		name    string
		work    recording.ActivityDetail
		records func(tap)
		kind    string
		command string
		from    string
	}{
		{
			"SLOWLOG and the kernel",
			recording.ActivityDetail{Op: "KEYS", Calls: 1, Client: caller},
			func(r tap) { slowlog(r.Recording, "KEYS", ms(1000), ms(49)) }, KindCommand, "KEYS", "slowlog",
		},
		{"and commandstats", recording.ActivityDetail{Op: "KEYS", Calls: 1, Client: caller}, func(r tap) {
			slowlog(r.Recording, "KEYS", ms(1000), ms(49))
			step(r, "cmdstat_keys.calls", 1)
			step(r, "cmdstat_keys.usec", 49_000)
		}, KindCommand, "KEYS", "slowlog"},
		{
			"the last read of a transaction",
			recording.ActivityDetail{Op: "HSET", Calls: 155, Client: caller},
			func(r tap) {
				step(r, "cmdstat_exec.calls", 1)
				step(r, "cmdstat_exec.usec", 45_000)
			}, KindCommand, "EXEC", "commandstats",
		},
		{
			"a transaction in one read",
			recording.ActivityDetail{Op: "MULTI", Calls: 155, Client: caller},
			func(tap) {},
			KindCommand, "EXEC", "",
		},
		{
			"a pipeline of short commands",
			recording.ActivityDetail{Op: "GET", Calls: 10_000, Client: caller},
			func(tap) {},
			KindPipeline, "GET", "",
		},
		{
			"a fork after a command",
			recording.ActivityDetail{Op: "GET", Calls: 1, Client: caller},
			func(r tap) { fork(r, ms(1000), ms(48)) }, KindFork, "GET", "info",
		},
		{"the expire cycle", recording.ActivityDetail{}, func(r tap) {
			step(r, "expire_cycle_cpu_milliseconds", 60)
			step(r, "expired_keys", 60_000)
		}, KindExpire, "", "info"},
		{
			"a command of constant time, without a record of it",
			recording.ActivityDetail{Op: "GET", Calls: 1, Client: caller},
			func(tap) {}, KindLoop, "GET", "",
		},
		{
			"a long command below SLOWLOG's threshold",
			recording.ActivityDetail{Op: "SMEMBERS", Calls: 1, Client: caller},
			func(tap) {}, KindCommand, "SMEMBERS", "",
		},
		{
			"a big reply",
			recording.ActivityDetail{Sends: true, Bytes: 30 << 20, Client: caller},
			func(tap) {}, KindBulk, "",
			"",
		},
		{"slowpath's own question", recording.ActivityDetail{Op: "INFO", Calls: 1, Client: caller}, func(r tap) {
			r.Snapshot(recording.Snapshot{
				Source: recording.SourceServer, Subject: node, Name: "clients",
				Body: `{"addr":"` + caller + `","self":true}` + "\n",
			})
		}, KindWatch, "INFO", ""},
		{
			"another connection's command in SLOWLOG",
			recording.ActivityDetail{Op: "SORT", Calls: 1, Client: "10.0.0.9:1"},
			func(r tap) { slowlog(r.Recording, "KEYS", ms(1000), ms(49)) }, KindCommand, "SORT", "",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := long(tt.work)
			tt.records(r)
			slowCall(r.Recording, ms(1010), ms(1060))
			r.Index()
			l := Build(r.Recording)
			var live []Suspect
			for _, s := range l.Suspects {
				if !s.Merged && (s.DurationNs >= ms(20)) {
					live = append(live, s)
				}
			}
			if len(live) != 1 {
				t.Fatalf("%d suspects, want 1: %+v", len(live), live)
			}
			if s := live[0]; s.Kind != tt.kind || s.Command != tt.command || s.Record != tt.from ||
				s.Source != recording.SourceTap {
				t.Errorf("%s %q recorded by %q, want %s %q %q: %+v", s.Kind, s.Command, s.Record, tt.kind, tt.command,
					tt.from, s)
			}
			probes := 0
			for _, a := range l.Slow {
				if a.Call.Source == recording.SourceProbe {
					probes++
					if a.Segments[0].Suspect < 0 || a.Segments[0].Ns() < ms(49) {
						t.Errorf("%+v", a.Segments)
					}
				}
			}
			if probes != 1 {
				t.Errorf("%d slow calls of the probe", probes)
			}
		})
	}
}
