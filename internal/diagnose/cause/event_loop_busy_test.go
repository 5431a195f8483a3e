package cause_test

import (
	"fmt"
	"strings"
	"testing"

	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
	"slowpath/internal/source/profile/stacks"
)

// Stacks of a server's main thread, with the thread's name first.
const (
	loopStack   = "redis-server > _start > main > aeMain > [redis-server]"
	defragStack = loopStack + " > serverCron > activeDefragCycle.lto_priv.0 > dictScanDefrag > je_free"
	getStack    = loopStack + " > readQueryFromClient > processInputBuffer > call > getCommand"
	writeStack  = loopStack + " > beforeSleep > handleClientsWithPendingWrites > writeToClient > write"
	trackStack  = loopStack + " > beforeSleep > trackingBroadcastInvalidationMessages"
	expireStack = loopStack + " > serverCron > databasesCron > activeExpireCycle > activeExpireCycleTryExpire"
	vendorStack = loopStack + " > serverCron > vendorAuditCron > auditWalk"
	noNameStack = loopStack + " > [redis-server] > [redis-server]"
)

// sampled says in which stacks the main thread was in each stall, in turn, 100 times per second. The thread is tid.
func (r loopCase) sampled(tid int64, in ...string) loopCase {
	p := &stacks.Profile{Types: []stacks.Type{{Name: "samples", Unit: "count"}, {Name: "cpu", Unit: "nanoseconds"}}}
	for _, second := range loopSeconds {
		for i := range int64(6) {
			p.Stacks = append(p.Stacks, stacks.Stack{
				Frames: strings.Split(in[int(second*6+i)%len(in)], " > "), Values: []int64{1, 10e6}, TID: tid,
				TimeNs: second*1e9 + 203e6 + i*10e6,
			})
		}
	}
	body, err := stacks.Write(p)
	if err != nil {
		panic(err)
	}
	r.Profile(recording.Profile{TimeNs: 10e9, Subject: "process:7", Kind: recording.ProfileCPUClock, Pprof: body})
	r.Snapshot(recording.Snapshot{
		Source: recording.SourceProfile, Subject: "process:7", Name: recording.SnapshotApplication,
		Body: recording.Detail(recording.Profiled{
			PID: 7, Name: "redis-server", Node: loopNode, Loop: 7, LoopOnly: true,
		}),
	})
	return r
}

func TestEventLoopBusy(t *testing.T) {
	sends := func(per float64, in ...string) loopCase {
		r := newLoopCase().busy().sampled(7, in...)
		return r.info("total_reads_processed", 1, 100).info("total_writes_processed", 1, per)
	}
	subscribers := make([]string, 12)
	for i := range subscribers {
		subscribers[i] = fmt.Sprintf(`{"addr":"10.0.0.8:%d","flags":"P"}`, 50000+i)
	}
	checkLoop(t, "event-loop-busy", []loopWant{
		{"T1, the thread seen busy", newLoopCase().busy().sampled(7, vendorStack), true, false},
		{"T1, the state not seen", newLoopCase().sampled(7, vendorStack), true, false},
		{"not the event loop", newLoopCase().busy().sampled(7, "envoy > main > run > work"), false, false},
		{"most of it", newLoopCase().busy().sampled(7, vendorStack, vendorStack, vendorStack, getStack), true, false},
		{"half of it", newLoopCase().busy().sampled(7, vendorStack, getStack), false, false},
		{"defragmentation", newLoopCase().busy().sampled(7, defragStack), false, false},
		{"no samples", newLoopCase().busy(), false, false},
		{"another thread", newLoopCase().busy().sampled(8, vendorStack), false, false},
		{"a command", newLoopCase().busy().sampled(7, getStack), false, false},
		{"replies", newLoopCase().busy().sampled(7, writeStack), false, false},
		{
			"invalidations", sends(900, writeStack, writeStack, trackStack).info("tracking_clients", 300, 0),
			true, false,
		},
		{"few are told", sends(900, writeStack, writeStack, trackStack).info("tracking_clients", 2, 0), false, false},
		{"most writes are replies", sends(110, writeStack).info("tracking_clients", 300, 0), false, false},
		{
			"messages", sends(900, writeStack).info("cmdstat_publish.calls", 1, 10).clients(subscribers...),
			true, false,
		},
		{
			"messages or invalidations", sends(900, writeStack).info("cmdstat_publish.calls", 1,
				10).clients(subscribers...).info("tracking_clients", 300, 0), false, false,
		},
		{"no names", newLoopCase().busy().sampled(7, noNameStack), false, false},
		{"keys that expire", newLoopCase().busy().sampled(7, expireStack), false, false},
		{
			"a thread that slept", newLoopCase().hosted(recording.KindBlocked, "wait4").sampled(7, vendorStack), false,
			false,
		},
	})
}

// What other causes explain is theirs, also where the server's counters do not show it.
func TestSampledJobs(t *testing.T) {
	checkLoop(t, "active-expire-cycle", []loopWant{
		{"in the expire cycle", newLoopCase().busy().sampled(7, expireStack), true, false},
		{"in another job", newLoopCase().busy().sampled(7, defragStack), false, false},
	})
	evicting := loopStack + " > readQueryFromClient > processCommand > performEvictions"
	checkLoop(t, "eviction-cycle", []loopWant{
		{"evicting", newLoopCase().busy().info("evicted_keys", 1, 20).sampled(7, evicting), true, false},
	})
}

// With the tap the thread's time is known, and what it had read last: the stacks say whether it was at that.
func TestSampledWork(t *testing.T) {
	sort := recording.ActivityDetail{Op: "SORT", Args: 2, Calls: 1, Client: loopClient}
	sets := recording.ActivityDetail{Op: "SET", Args: 3, Calls: 4000, Client: loopClient, Bytes: 1 << 17}
	const set = loopStack + " > readQueryFromClient > processInputBuffer > processCommand > call > setCommand"
	const event = set + " > notifyKeyspaceEvent > pubsubPublishMessage"
	checkLoop(t, "event-loop-busy", []loopWant{
		{"after a command", newLoopCase().worked(sort).sampled(7, vendorStack), true, false},
		{"set off by a pipeline", newLoopCase().worked(sets).sampled(7, event), true, false},
		{"a pipeline", newLoopCase().worked(sets).sampled(7, set), false, false},
	})
	checkLoop(t, "slow-command", []loopWant{
		{"no samples", newLoopCase().worked(sort), true, false},
		{"in the command", newLoopCase().worked(sort).sampled(7, getStack), true, false},
		{"in work of the loop", newLoopCase().worked(sort).sampled(7, defragStack), false, false},
	})
	checkLoop(t, "oversized-pipeline-or-multikey", []loopWant{
		{"no samples", newLoopCase().worked(sets), true, false},
		{"in its commands", newLoopCase().worked(sets).sampled(7, set), true, false},
		{"in what they set off", newLoopCase().worked(sets).sampled(7, event, event, event, set), false, false},
	})
}

// Where nothing explains the stalls, it is said what the thread did in them.
func TestInconclusiveSaysWhatTheThreadDid(t *testing.T) {
	d := newLoopCase().busy().sampled(7, writeStack, getStack).diagnose()
	want := "By 36 samples the main thread of 10.0.0.1:6379 was meanwhile: running a command (getCommand) 50 %, " +
		"writing replies 50 %."
	if d.Verdict != verdict.Inconclusive || !strings.HasSuffix(d.Summary, want) {
		t.Errorf("%s: %s", d.Verdict, d.Summary)
	}
}

func TestNamelessFunctions(t *testing.T) {
	for name, tt := range map[string]struct {
		rec  loopCase
		want bool
	}{
		"no names":  {newLoopCase().busy().sampled(7, noNameStack), true},
		"names":     {newLoopCase().busy().sampled(7, defragStack), false},
		"no stalls": {loopCase{recording.New()}, false},
	} {
		said := false
		for _, b := range tt.rec.diagnose().BlindSpots {
			said = said || strings.Contains(b.Why, "stripped of its symbols")
		}
		if said != tt.want {
			t.Errorf("%s: said %v", name, said)
		}
	}
}
