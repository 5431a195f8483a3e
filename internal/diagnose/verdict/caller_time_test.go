package verdict_test

import (
	"slices"
	"strings"
	"testing"

	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
	"slowpath/internal/source/profile/stacks"
)

// waited is a recording of a minute, with what the threads of process 7 waited for by then, and by its end.
func waited(all ...recording.ThreadWaits) *recording.Recording {
	rec := recording.New()
	rec.Meta[recording.MetaStart], rec.Meta[recording.MetaEnd] = "0", "60000000000"
	rec.Snapshot(recording.Snapshot{
		Source: recording.SourceTap, Subject: recording.ProcessPrefix + "7", Name: recording.SnapshotProgram,
		Body: recording.Detail(recording.Program{Name: "shop.py", Comm: "python3"}),
	})
	for i, w := range all {
		rec.Snapshot(recording.Snapshot{
			TimeNs: int64(i+1) * 10e9, Source: recording.SourceTap, Subject: recording.ProcessPrefix + "7",
			Name: recording.SnapshotWaits, Body: recording.Detail(w),
		})
	}
	rec.Index()
	return rec
}

func TestCallersTime(t *testing.T) {
	polls := recording.ThreadWaits{
		Threads: 2, Ns: 120e9, RedisNs: 1e9, TimerNs: 100e9, RunQueueNs: 2e9, Polls: 400, PollsNs: 20e9,
		PollOp: "EXISTS",
	}
	d := verdict.Diagnose(waited(polls), "test")
	if len(d.CallersTime) != 1 {
		t.Fatalf("%+v", d.CallersTime)
	}
	c := d.CallersTime[0]
	sum := int64(0)
	for _, p := range c.Parts {
		sum += p.Ns
	}
	if c.Name != "shop.py" || c.PID != 7 || sum != c.Ns || c.In("running") != 17e9 || c.Parts[0].What != "timer" {
		t.Errorf("%+v", c)
	}
	const said = "shop.py[7] asked for the same again and again: 400 pauses of 50 ms on average between equal EXISTS"
	if got := c.PollsSaid(); !strings.HasPrefix(got, said) {
		t.Errorf("said %q", got)
	}
	many := polls // threads, most of which have nothing to do
	many.Threads, many.Ns, many.TimerNs, many.LockNs = 12, 720e9, 550e9, 150e9
	if got := verdict.Diagnose(waited(many), "test").CallersTime[0].PollsSaid(); !strings.HasPrefix(got, said) {
		t.Errorf("beside idle threads it says %q", got)
	}
	few := polls
	for _, few.Polls = range []int64{3, 40} { // of which the second are a small part of the time
		few.PollsNs = few.Polls * 50e6
		if got := verdict.Diagnose(waited(few), "test").CallersTime[0].PollsSaid(); got != "" {
			t.Errorf("of %d pauses it says %q", few.Polls, got)
		}
	}

	db := recording.ThreadWaits{
		Threads: 2, Ns: 120e9, RedisNs: 1e9, PeersNs: 61e9,
		Outside: recording.WaitList{
			{Address: "10.0.0.9:5432", Ns: 60e9, Waits: 3000}, {Address: recording.UnixPeer, Ns: 1e9, Waits: 9},
		},
	}
	const waits = "The threads of shop.py wait for 10.0.0.9:5432, for 50 % of their time (20 ms on average), and for " +
		"Redis for 0.8 %."
	if got := verdict.Diagnose(waited(db), "test").Summary; !strings.Contains(got, waits) {
		t.Errorf("said %q", got)
	}
	db.RedisNs = 70e9
	if got := verdict.Diagnose(waited(db), "test").Summary; strings.Contains(got, "5432") {
		t.Errorf("of a caller that waits for Redis: %q", got)
	}

	disk := recording.ThreadWaits{
		Threads: 2, Ns: 120e9, RedisNs: 1e9, TimerNs: 5e9, BlockedNs: 60e9, Polls: 40, PollsNs: 2e9, PollOp: "GET",
		Outside: recording.WaitList{
			{Call: "fsync", File: "audit.log", Files: true, Device: "sda", Ns: 60e9, Waits: 30_000},
			{Call: "wait4", Ns: 1e9, Waits: 9},
		},
	}
	const syncs = "The threads of shop.py wait in fsync of files such as audit.log on sda, for 50 % of their time " +
		"(2 ms on average), and for Redis for 0.8 %."
	if got := verdict.Diagnose(waited(disk), "test").Summary; !strings.Contains(got, syncs) {
		t.Errorf("said %q", got)
	}

	loop := recording.ThreadWaits{
		Threads: 1, Ns: 60e9, RedisNs: 1e9, EventsNs: 30e9, Stalls: 70, StallsNs: 6e9, StallMax: 90e6,
	}
	const stalls = "The event loop of shop.py[7] did nothing else for up to 90 ms at a time, 10 % of the watch in all"
	if got := verdict.Diagnose(waited(loop), "test").Summary; !strings.Contains(got, stalls) {
		t.Errorf("said %q", got)
	}
	loop.StallsNs = 2e9
	loop.Asked = recording.WaitList{{Address: "10.0.0.9:5432", Ns: 30e9, Waits: 1500}}
	const asked = "Requests of shop.py to 10.0.0.9:5432 take 20 ms on average, and 0.5 of them were under way at a " +
		"time; of those to Redis 0."
	if got := verdict.Diagnose(waited(loop), "test").Summary; !strings.Contains(got, asked) {
		t.Errorf("said %q", got)
	}
	for _, w := range []recording.WaitsFor{
		{Address: "10.0.0.9:5432", Ns: 3e9, Waits: 1500}, {Address: "10.0.0.9:5432", Ns: 30e9},
	} {
		loop.Asked[0] = w
		if got := verdict.Diagnose(waited(loop), "test").Summary; strings.Contains(got, "5432") {
			t.Errorf("of %+v: %q", w, got)
		}
	}
	if got := verdict.Diagnose(waited(loop), "test").Summary; strings.Contains(got, "event loop") {
		t.Errorf("of few stalls: %q", got)
	}

	// A watch of days, of which this is a minute.
	before := polls
	before.Ns, before.TimerNs, before.Polls, before.PollsNs = 90_000e9, 80_000e9, 0, 0
	now := before
	now.Ns, now.TimerNs = now.Ns+20e9, now.TimerNs+15e9
	if got := verdict.Diagnose(waited(before, now), "test").CallersTime[0]; got.Ns != 20e9 || got.In("timer") != 15e9 {
		t.Errorf("of a minute: %+v", got)
	}
	if got := verdict.Diagnose(waited(now), "test").CallersTime; got != nil {
		t.Errorf("of one point in time: %+v", got)
	}
}

// TestLockOfInterpreter: threads that wait for each other, and the function that has the lock meanwhile, by the
// language of the program.
func TestLockOfInterpreter(t *testing.T) {
	for kind, want := range map[string]string{
		recording.ProfilePython: "Python's interpreter lock was held in 80 % of the samples, mostly in price (shop:9)",
		recording.ProfileRuby:   "Ruby's lock (GVL) was held in 80 % of the samples, mostly in price (shop:9)",
	} {
		rec := recording.New()
		rec.Meta[recording.MetaStart], rec.Meta[recording.MetaEnd] = "0", "60000000000"
		rec.SetMeta(recording.MetaNodes, `["10.0.0.1:6379"]`)
		const subject = recording.ProcessPrefix + "7"
		rec.Snapshot(recording.Snapshot{
			Source: recording.SourceTap, Subject: subject, Name: recording.SnapshotProgram,
			Body: recording.Detail(recording.Program{Name: "shop", Comm: "puma"}),
		})
		rec.Snapshot(recording.Snapshot{
			TimeNs: 10e9, Source: recording.SourceTap, Subject: subject, Name: recording.SnapshotWaits,
			Body: recording.Detail(recording.ThreadWaits{Threads: 4, Ns: 240e9, RedisNs: 1e9, LockNs: 150e9}),
		})
		p := &stacks.Profile{Types: []stacks.Type{{Name: "holds_lock", Unit: "count"}}}
		for i := range int64(100) {
			held := int64(1)
			if i%5 == 0 {
				held = 0
			}
			p.Stacks = append(p.Stacks, stacks.Stack{
				Frames: []string{"thread 7", "main (shop:20)", "price (shop:9)"}, Values: []int64{held},
				TimeNs: i * 20e6, TID: 7,
			})
		}
		body, err := stacks.Write(p)
		if err != nil {
			t.Fatal(err)
		}
		rec.Profile(recording.Profile{TimeNs: 9e9, Subject: subject, Kind: kind, Pprof: body})
		rec.Index()
		if got := verdict.Diagnose(rec, "test").Summary; !strings.Contains(got, want) {
			t.Errorf("%s: said %q", kind, got)
		}
	}
}

// TestCallersTimeOfSamples: the host's rows count where the tap has none of a process.
func TestCallersTimeOfSamples(t *testing.T) {
	rec := waited(recording.ThreadWaits{Threads: 2, Ns: 120e9, RedisNs: 20e9, TimerNs: 100e9})
	for pid, w := range map[string]recording.ThreadWaits{
		"7": {Threads: 1, Ns: 50e9, LimitNs: 50e9},
		"8": {Threads: 3, Ns: 100e9, LimitNs: 90e9, RunQueueNs: 4e9, Others: 5},
	} {
		rec.Snapshot(recording.Snapshot{
			TimeNs: 59e9, Source: recording.SourceHost, Subject: recording.ProcessPrefix + pid,
			Name: recording.SnapshotWaits, Body: recording.Detail(w),
		})
	}
	rec.Index()
	got := verdict.Diagnose(rec, "test").CallersTime
	if len(got) != 2 || got[0].Source != recording.SourceTap || got[0].In("timer") != 100e9 ||
		got[1].Source != recording.SourceHost || got[1].In("limit") != 90e9 || got[1].In("running") != 6e9 ||
		got[1].OtherThreads != 5 {
		t.Errorf("%+v", got)
	}
}

// TestKindsOfCallers: workers of one program that do the same are one kind; the one that does something else is not.
func TestKindsOfCallers(t *testing.T) {
	of := func(pid int, name string, redis, lock int64) verdict.CallerTime {
		parts := []verdict.TimePart{{What: "redis", Ns: redis}, {What: "lock", Ns: lock}}
		slices.SortFunc(parts, func(a, b verdict.TimePart) int { return int(b.Ns - a.Ns) })
		return verdict.CallerTime{Name: name, PID: pid, Threads: 2, Ns: redis + lock, Parts: parts}
	}
	got := verdict.KindsOfCallers([]verdict.CallerTime{
		of(1, "worker", 90, 10), of(2, "worker", 70, 30), of(3, "worker", 20, 80), of(4, "cron", 90, 10),
	})
	if len(got) != 3 {
		t.Fatalf("%d kinds: %+v", len(got), got)
	}
	if k := got[0]; k.Processes != 2 || k.PID != 0 || k.Threads != 4 || k.Ns != 200 || k.In("redis") != 160 ||
		k.Parts[0].Share != 0.8 {
		t.Errorf("workers: %+v", k)
	}
	if k := got[1]; k.Processes != 1 || k.PID != 3 {
		t.Errorf("the other worker: %+v", k)
	}
}
