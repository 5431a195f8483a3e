package cause_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
)

// loopCase builds small recordings for the causes of the event loop and persistence: ten seconds of one server, 50
// calls per second of 0.2 ms, and in each second from the third to the eighth a stall of 60 ms at 200 ms past it.
type loopCase struct{ *recording.Recording }

const (
	loopNode   = "10.0.0.1:6379"
	loopClient = "10.0.0.7:51000"
	loopStall  = int64(60e6)
	loopStalls = 6 // one in each second of loopSeconds
)

// loopSeconds are the seconds with a stall.
var loopSeconds = []int64{3, 4, 5, 6, 7, 8}

func newLoopCase() loopCase {
	r := loopCase{recording.New()}
	r.SetMeta(recording.MetaTarget, loopNode)
	r.SetMeta(recording.MetaServer, "redis 7.0.15")
	r.SetMeta(recording.MetaStart, "0")
	r.SetMeta(recording.MetaEnd, "10000000000")
	for i := range int64(500) {
		at, ns := i*20e6, int64(200e3)
		if second, phase := at/1e9, at%1e9-200e6; second >= 3 && second <= 8 && phase >= 0 && phase < loopStall {
			ns += loopStall - phase
		}
		r.Call(recording.Call{
			Source: recording.SourceProbe, Conn: "kept", Op: "PING", Node: loopNode, IntendedNs: at,
			StartNs: at, EndNs: at + ns,
		})
	}
	return r
}

// newFullLoopCase is a server with a main thread that is busy all the time: its calls queue for 3 ms, none of them
// for 5 ms.
func newFullLoopCase() loopCase {
	r := loopCase{recording.New()}
	r.SetMeta(recording.MetaTarget, loopNode)
	r.SetMeta(recording.MetaServer, "redis 7.0.15")
	r.SetMeta(recording.MetaStart, "0")
	r.SetMeta(recording.MetaEnd, "10000000000")
	for i := range int64(500) {
		ns := int64(3e6)
		if i%50 == 0 {
			ns = 2e5
		}
		r.Call(recording.Call{Source: recording.SourceProbe, Conn: "kept", Op: "PING", Node: loopNode, IntendedNs: i *
			20e6, StartNs: i * 20e6, EndNs: i*20e6 + ns})
	}
	for at, ns := range map[int64]float64{0: 0, 10e9: 9.5e9} {
		r.Sample(recording.Sample{
			TimeNs: at, Source: recording.SourceHost, Subject: loopNode, Name: "main.run_ns",
			Value: ns,
		})
	}
	return r
}

// hosted says that the main thread was watched; where a state is given, it was in it during each stall.
func (r loopCase) hosted(state, syscall string) loopCase {
	r.Sample(recording.Sample{TimeNs: 0, Source: recording.SourceHost, Subject: loopNode, Name: "main.run_ns"})
	r.Sample(recording.Sample{
		TimeNs: 10e9, Source: recording.SourceHost, Subject: loopNode, Name: "main.run_ns",
		Value: 1e9,
	})
	for _, s := range loopSeconds {
		if state != "" {
			r.Event(recording.Event{
				TimeNs: s*1e9 + 200e6, DurationNs: loopStall, Source: recording.SourceHost,
				Subject: loopNode, Kind: state,
				Detail: recording.Detail(recording.ThreadDetail{Share: 1, Syscall: syscall}),
			})
		}
	}
	return r
}

func (r loopCase) busy() loopCase { return r.hosted(recording.KindBusy, "") }

// logged says that SLOWLOG shows a command in each stall.
func (r loopCase) logged(command string, args int, bytes int64) loopCase {
	for _, s := range loopSeconds {
		r.server(s*1e9, loopStall, recording.KindSlowlog, recording.SlowlogDetail{
			Command: command, ArgCount: args,
			ArgBytes: bytes, Client: loopClient, WindowNs: 1e9,
		})
	}
	return r
}

func (r loopCase) server(at, ns int64, kind string, detail any) loopCase {
	r.Event(recording.Event{
		TimeNs: at, DurationNs: ns, Source: recording.SourceServer, Subject: loopNode, Kind: kind,
		Detail: recording.Detail(detail),
	})
	return r
}

// counted says how much commandstats counts of a command in each second with a stall, in calls and microseconds.
func (r loopCase) counted(command string, calls, usec float64) loopCase {
	return r.info("cmdstat_"+command+".calls", 1, calls).info("cmdstat_"+command+".usec", 100, usec)
}

// info is a counter that grows by delta in each second with a stall, from a value.
func (r loopCase) info(name string, from, delta float64) loopCase {
	v := from
	for s := range int64(11) {
		if s > 3 && s <= 9 {
			v += delta
		}
		r.Sample(recording.Sample{
			TimeNs: s * 1e9, Source: recording.SourceServer, Subject: loopNode, Name: name,
			Value: v,
		})
	}
	return r
}

func (r loopCase) config(pairs ...string) loopCase {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	body, _ := json.Marshal(m) // strings always encode
	r.Snapshot(recording.Snapshot{
		Source: recording.SourceServer, Subject: loopNode, Name: "config",
		Body: string(body),
	})
	return r
}

func (r loopCase) clients(lines ...string) loopCase {
	body := ""
	for _, l := range lines {
		body += l + "\n"
	}
	r.Snapshot(recording.Snapshot{Source: recording.SourceServer, Subject: loopNode, Name: "clients", Body: body})
	return r
}

// diagnose gives the first finding and whether a cause is among all of them.
func (r loopCase) diagnose() verdict.Diagnosis {
	r.Index()
	return verdict.Diagnose(r.Recording, "test")
}

// loopWant is what a table test of a cause expects: the cause first, or that it is not named, and whether something
// speaks against it.
type loopWant struct {
	name    string
	rec     loopCase
	named   bool
	doubted bool
}

func checkLoop(t *testing.T, id string, tests []loopWant) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := tt.rec.diagnose()
			var found *cause.Finding
			for i := range d.Findings {
				if d.Findings[i].Cause == id {
					found = &d.Findings[i]
				}
			}
			switch {
			case !tt.named && found != nil:
				t.Errorf("named: %v", found.Evidence)
			case !tt.named:
			case found == nil:
				t.Errorf("not named; findings %v", names(d))
			case d.Findings[0].Cause != id:
				t.Errorf("not first; findings %v", names(d))
			case found.Doubts > 0 != tt.doubted:
				t.Errorf("%d doubts: %v", found.Doubts, found.Against)
			case len(found.Evidence) == 0 || len(found.FixLines()) == 0 || len(found.See) == 0:
				t.Errorf("incomplete: %+v", *found)
			}
		})
	}
}

func names(d verdict.Diagnosis) []string {
	var out []string
	for _, f := range d.Findings {
		out = append(out, fmt.Sprintf("%s %.2f", f.Cause, f.ExcessShare))
	}
	return out
}

// The account of each of these recordings is a partition: what loop suspects add must keep it one.
func TestLoopAccountsAddUp(t *testing.T) {
	for name, r := range map[string]loopCase{
		"slowlog and commandstats": newLoopCase().busy().logged("EVAL", 3, 40).counted("eval", 3, 90_000),
		"jobs": newLoopCase().busy().info("expire_cycle_cpu_milliseconds", 0,
			250).info("expired_keys", 0, 1e5).info("evicted_keys", 0, 1e5),
		"bytes": newLoopCase().info("total_net_output_bytes", 0, 9e8).info("total_commands_processed", 0, 100),
	} {
		r.Index()
		for _, a := range account.Build(r.Recording).Slow {
			at := a.Call.IntendedNs
			for _, s := range a.Segments {
				if s.FromNs != at || s.ToNs <= s.FromNs {
					t.Fatalf("%s: segment [%d, %d) after %d", name, s.FromNs, s.ToNs, at)
				}
				at = s.ToNs
			}
			if at != a.Call.EndNs {
				t.Fatalf("%s: segments end at %d, the call at %d", name, at, a.Call.EndNs)
			}
		}
	}
}
