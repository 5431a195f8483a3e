package verdict

import (
	"fmt"
	"math"
	"reflect"
	"testing"

	"slowpath/internal/recording"
	"slowpath/internal/source/profile/stacks"
)

// onCPURecording has a second of samples, 100 each: in the first 300 ms a call was slow.
func onCPURecording(t *testing.T, what recording.Profiled, slowFrames, restFrames []string) *recording.Recording {
	t.Helper()
	const start = int64(1e15)
	r := recording.New()
	r.SetMeta(recording.MetaStart, fmt.Sprint(start))
	r.SetMeta(recording.MetaEnd, fmt.Sprint(start+1e9))
	r.SetMeta(recording.MetaNodes, `["redis:6379"]`)
	r.SetMeta(recording.MetaSlow, "10ms")
	p := &stacks.Profile{Types: []stacks.Type{{Name: "samples", Unit: "count"}, {Name: "cpu", Unit: "nanoseconds"}}}
	for i := range int64(100) {
		frames := restFrames
		if i < 30 {
			frames = slowFrames
		}
		p.Stacks = append(p.Stacks, stacks.Stack{Frames: frames, Values: []int64{1, 1e7}, TimeNs: start + i*1e7})
	}
	body, err := stacks.Write(p)
	if err != nil {
		t.Fatal(err)
	}
	r.Profile(recording.Profile{TimeNs: start, Subject: "process:7", Kind: recording.ProfileCPUClock, Pprof: body})
	// cut short
	r.Profile(recording.Profile{TimeNs: start, Subject: "process:7", Kind: recording.ProfileCPUClock, Pprof: body[:20]})
	r.Snapshot(recording.Snapshot{
		TimeNs: start, Source: recording.SourceProfile, Subject: "process:7",
		Name: recording.SnapshotApplication, Body: recording.Detail(what),
	})
	for i, ms := range []int64{300, 1, 1, 1} {
		r.Call(recording.Call{
			ID: int64(i + 1), Source: recording.SourceProbe, Conn: "kept", Op: "GET",
			Node: "redis:6379", IntendedNs: start, StartNs: start, EndNs: start + ms*1e6,
		})
	}
	r.Index()
	return r
}

func TestOnCPU(t *testing.T) {
	server := recording.Profiled{PID: 7, Name: "redis-server", Node: "redis:6379"}
	main := []string{"redis-server", "main", "aeMain"}
	script, get := append(main, "call", "lua_pcall", "[redis-server]"), append(main, "call", "getCommand")
	for name, tt := range map[string]struct {
		what       recording.Profiled
		slow, rest []string
		differs    bool
		want       []OnCPUFunction
	}{
		"a script": {server, script, get, true, []OnCPUFunction{{"lua_pcall", 1, 0}}},
		"the same": {server, get, get, false, []OnCPUFunction{}},
		"calls of others": {
			recording.Profiled{PID: 7, Name: "redis-server", Node: "other:6379"},
			script, get,
			false,
			[]OnCPUFunction{{"getCommand", 0, 0.7}, {"lua_pcall", 0, 0.3}},
		},
		"neither end": {
			recording.Profiled{PID: 7, Name: "nginx"},
			script, get, true,
			[]OnCPUFunction{{"lua_pcall", 1, 0}},
		},
		"another application": {recording.Profiled{}, get, script, true, []OnCPUFunction{{"getCommand", 1, 0}}},
	} {
		d := Diagnose(onCPURecording(t, tt.what, tt.slow, tt.rest), "test")
		if len(d.OnCPU) != 1 {
			t.Fatalf("%s: %+v", name, d.OnCPU)
		}
		o := d.OnCPU[0]
		if o.Slow.Samples+o.Rest.Samples != 100 || o.Slow.Ns+o.Rest.Ns != 1e9 || o.Slow.CPUNs+o.Rest.CPUNs != 1e9 {
			t.Errorf("%s: %+v", name, o)
		}
		if o.Differs != tt.differs || !reflect.DeepEqual(o.Functions, tt.want) {
			t.Errorf("%s: %v %+v, want %+v", name, o.Differs, o.Functions, tt.want)
		}
	}
}

// TestChanceIsNotReported: functions that are seen at random differ at most as often as three standard errors allow.
func TestChanceIsNotReported(t *testing.T) {
	o := &OnCPU{Slow: Side{Samples: 30}, Rest: Side{Samples: 70}}
	in := map[string]*seenIn{"main": {name: "main", slow: 30, rest: 70, depth: 1}, "a": {
		name: "a", slow: 12, rest: 21,
		depth: 2,
	}, "b": {name: "b", slow: 18, rest: 49, depth: 2}}
	if o.choose(in); o.Differs || len(o.Functions) != 2 {
		t.Errorf("%+v", o)
	}
	if c := chance(in["a"], o); math.Abs(c-3*math.Sqrt(0.33*0.67*(1./30+1./70))) > 1e-9 {
		t.Errorf("%f", c)
	}
}
