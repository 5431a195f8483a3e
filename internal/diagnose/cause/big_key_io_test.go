package cause_test

import (
	"fmt"
	"strings"
	"testing"

	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
)

func TestBigKeyIO(t *testing.T) {
	bytes := func(r loopCase, perSecond float64) loopCase {
		return r.info("total_net_output_bytes", 0, perSecond).info("total_commands_processed", 0, 500)
	}
	checkLoop(t, "big-key-io", []loopWant{
		{"absent", newLoopCase().busy(), false, false},
		{"T1 bytes alone", bytes(newLoopCase().busy(), 5e8), true, false},
		{"T1 GET of 80 MB", bytes(newLoopCase().busy().logged("GET", 2, 10), 8e7), true, false},
		{"T1 SET of 80 MB", newLoopCase().busy().logged("SET", 3, 80e6), true, false},
		{"T1 HGETALL of 80 MB", bytes(newLoopCase().busy().counted("hgetall", 1, 60_000), 8e7), true, false},
		{"T0 bytes alone", bytes(newLoopCase(), 5e8), true, false},
		{"SMEMBERS of many small ones", bytes(newLoopCase().busy().counted("smembers", 1, 60_000), 6e6), false, false},
		{"many small replies", newLoopCase().busy().info("total_net_output_bytes", 0,
			2e8).info("total_commands_processed", 0, 1e6), false, false},
		{"big values on a throttled server", bytes(newLoopCase().hosted(recording.KindThrottled, "").logged("GET", 2,
			10), 8e6), false, false},
		{"MONITOR", bytes(newLoopCase().busy(),
			5e8).clients(`{"id":3,"addr":"10.0.0.9:1","flags":"O","cmd":"monitor"}`), false, false},
	})
}

// long says that COMMANDLOG has a long reply, or request, of a command in each stall.
func (r loopCase) long(kind, command string, bytes int64) loopCase {
	for i, s := range loopSeconds {
		r.server(s*1e9, 0, kind, recording.SlowlogDetail{
			ID: int64(i), Command: command, ArgCount: 2, ArgBytes: 20, Client: loopClient, WindowNs: 1e9,
			Bytes: bytes, KeyHash: "a",
		})
	}
	return r
}

// TestBigKeyIOLogged: a server that logs long replies says of which command and client they are.
func TestBigKeyIOLogged(t *testing.T) {
	bytes := func(r loopCase) loopCase {
		return r.info("total_net_output_bytes", 0, 5e8).info("total_commands_processed", 0, 500)
	}
	checkLoop(t, "big-key-io", []loopWant{
		{
			"T0 most bytes are long replies", bytes(newLoopCase()).long(recording.KindLargeReply, "GET", 4e8), true,
			false,
		},
		{"T0 few are", bytes(newLoopCase()).long(recording.KindLargeReply, "GET", 1e7), true, false},
		{"T0 no length", bytes(newLoopCase()).long(recording.KindLargeReply, "GET", -1), true, false},
		{"long replies alone", newLoopCase().long(recording.KindLargeReply, "GET", 4e8), false, false},
	})
	d := bytes(newLoopCase()).long(recording.KindLargeReply, "HGETALL", 4e8).long(recording.KindLargeRequest, "SET",
		5e6).diagnose()
	f := d.Findings[0]
	text := fmt.Sprint(f.Evidence, f.FixLines(), f.Culprits)
	for _, want := range []string{
		"COMMANDLOG: 6 long replies of HGETALL (1 key), up to 400.0 MB: 80 % of the bytes that the server sent; the " +
			"longest: " + loopClient,
		"HMGET of the fields", "COMMANDLOG GET 10 large-reply shows the keys", "10.0.0.7",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
}

// Big but legitimate values slow no call.
func TestBigValuesWithoutSlowCalls(t *testing.T) {
	r := loopCase{recording.New()}
	r.SetMeta(recording.MetaTarget, loopNode)
	r.SetMeta(recording.MetaStart, "0")
	r.SetMeta(recording.MetaEnd, "10000000000")
	for i := range int64(500) {
		r.Call(recording.Call{Source: recording.SourceProbe, Conn: "kept", Op: "PING", Node: loopNode, IntendedNs: i *
			20e6, StartNs: i * 20e6, EndNs: i*20e6 + 3e5})
	}
	if d := r.info("total_net_output_bytes", 0, 2e8).info("total_commands_processed", 0, 400).counted("get", 200,
		40_000).diagnose(); d.Verdict != verdict.Healthy {
		t.Errorf("%s: %v", d.Verdict, names(d))
	}
}
