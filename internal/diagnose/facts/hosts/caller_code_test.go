package hosts_test

import (
	"strings"
	"testing"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/recording"
	"slowpath/internal/source/profile/stacks"
)

// TestCodeIn: the innermost function that most samples have in common, of the time that is asked for.
func TestCodeIn(t *testing.T) {
	const main, handle, run = "module (shop.py:90)", "handle (shop.py:40)", "run [asyncio/runners.py:190]"
	const price = "price (shop.py:50)"
	const dumps, loads = "dumps [json/__init__.py:231]", "loads [json/__init__.py:340]"
	const encode = "encode [json/encoder.py:200]"
	both := func(a, b []stacks.Stack) []stacks.Stack { return append(a, b...) }
	in := func(n int, from int64, frames ...string) (out []stacks.Stack) {
		for i := range n {
			out = append(out, stacks.Stack{
				Frames: append([]string{"thread 7"}, frames...), Values: []int64{1}, TimeNs: from + int64(i), TID: 7,
			})
		}
		return out
	}
	const goexit, burn, invoke = "runtime.goexit", "main.burn", "v8::internal::Execution::Call"
	const parse = "v8::internal::Builtin_JsonParse"
	const inJava, runnable = "long shop.Price.total(java.lang.String)", "void java.lang.Thread.run()"
	const lambda = "void shop.Price$$Lambda$14/0x0000000800c03000.run()"
	java := map[string]bool{"Java": true, "a lambda": true, "a JVM itself": true, "not named": true}
	native := map[string]bool{"a goroutine": true, "JSON": true, "JavaScript": true, "its main alone": true}
	for name, c := range map[string]struct {
		samples []stacks.Stack
		want    string
		ok      bool
	}{
		"one place":       {in(20, 1e9, main, run, handle, dumps, encode), handle + ", in " + dumps, true},
		"two libraries":   {both(in(9, 1e9, main, handle, dumps), in(9, 1e9, main, handle, loads)), handle, true},
		"two functions":   {both(in(9, 1e9, main, handle), in(9, 1e9, main, price)), main, true},
		"under a library": {both(in(9, 1e9, main, run, price), in(9, 1e9, main, run)), main + ", in " + run, true},
		"other lines":     {both(in(12, 1e9, main, handle), in(9, 1e9, main, "handle (shop.py:41)")), handle, true},
		"few":             {in(9, 1e9, main, handle), "", false},
		"at another time": {in(20, 5e9, main, handle), "", false},
		"libraries alone": {in(20, 1e9, run, dumps), "", false},
		"a goroutine":     {in(20, 1e9, goexit, burn, "runtime.mallocgc"), burn + ", in runtime.mallocgc", true},
		"JSON":            {in(20, 1e9, "main", invoke, parse, "Parse"), "JSON.parse", true},
		"JavaScript":      {in(20, 1e9, "main", invoke, "[jit]", "memcpy_[k]"), "JavaScript code (node --perf-", true},
		"its main alone":  {in(20, 1e9, "_start", "main", "uv_run"), "", false},
		"Java": {
			in(20, 1e9, "start_thread", "JavaMain", "Interpreter", runnable, inJava, "boolean java.util.List.add(int)"),
			"shop.Price.total, in java.util.List.add", true,
		},
		"a lambda":     {in(20, 1e9, "[callers not found]", lambda), "shop.Price.run", true},
		"a JVM itself": {in(20, 1e9, "clone", "G1ParTask::work", "[libjvm.so]"), "", false},
		"not named":    {in(20, 1e9, "[jit]", "I2C/C2I adapters"), "", false},
		"nothing":      {},
	} {
		rec := recording.New()
		rec.SetMeta(recording.MetaNodes, `["10.0.0.1:6379"]`)
		body, err := stacks.Write(&stacks.Profile{
			Types: []stacks.Type{{Name: "samples", Unit: "count"}}, Stacks: c.samples,
		})
		if err != nil {
			t.Fatal(err)
		}
		kind := recording.ProfilePython
		if native[name] || java[name] {
			kind = recording.ProfileCPUClock
		}
		if java[name] {
			rec.Snapshot(recording.Snapshot{
				Source: recording.SourceProfile, Subject: "process:7", Name: recording.SnapshotApplication,
				Body: recording.Detail(recording.Profiled{PID: 7, Name: "java", Runtime: "jvm"}),
			})
		}
		rec.Profile(recording.Profile{TimeNs: 9e9, Subject: "process:7", Kind: kind, Pprof: body})
		rec.Index()
		n := facts.New(rec).Nodes[0]
		got, ok := hosts.CodeIn(n, 7, facts.Spans{{FromNs: 1e9, ToNs: 2e9}},
			func(hosts.CodeSample) bool { return true })
		if ok != c.ok || !strings.HasPrefix(got.Text(), c.want) || c.want == "" && ok {
			t.Errorf("%s: %+v, %v", name, got, ok)
		}
	}
}

// TestHolderCode: who holds what others wait for is where it was while they slept; who waits for it itself has not got
// it.
func TestHolderCode(t *testing.T) {
	rec := recording.New()
	rec.SetMeta(recording.MetaNodes, `["10.0.0.1:6379"]`)
	samples := &stacks.Profile{Types: []stacks.Type{{Name: "samples", Unit: "count"}}}
	for at := int64(1e9); at < 3e9; at += 1e8 {
		for tid, function := range map[int64]string{8: "refresh (shop.py:5)", 9: "handle (shop.py:7)"} {
			if at >= 2e9 { // they change places
				tid = 17 - tid
			}
			samples.Stacks = append(samples.Stacks, stacks.Stack{
				Frames: []string{"thread", function}, Values: []int64{1}, TimeNs: at, TID: tid,
			})
		}
	}
	body, err := stacks.Write(samples)
	if err != nil {
		t.Fatal(err)
	}
	rec.Profile(recording.Profile{TimeNs: 9e9, Subject: "process:7", Kind: recording.ProfilePython, Pprof: body})
	for _, w := range []struct{ from, tid, by int64 }{{1e9, 9, 8}, {2e9, 8, 9}} {
		rec.Event(recording.Event{
			TimeNs: w.from, DurationNs: 95e7, Source: recording.SourceTap, Subject: "process:7",
			Kind: recording.KindLockWait, Detail: recording.Detail(recording.ThreadDetail{
				TID: int(w.tid), Syscall: "futex", By: &recording.Task{PID: 7, TID: int(w.by)},
			}),
		})
	}
	rec.Index()
	got, ok := hosts.HolderCode(facts.New(rec).Nodes[0], 7)
	if want := (hosts.Code{Function: "refresh (shop.py:5)", In: 20, Samples: 20}); !ok || got != want {
		t.Errorf("%+v, %v", got, ok)
	}
}
