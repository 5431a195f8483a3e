package report

import (
	"bytes"
	"fmt"
	"testing"

	"slowpath/internal/house/golden"

	"slowpath/internal/recording"
	"slowpath/internal/report/layout"
	"slowpath/internal/trace"
)

// tapped is a call with segments that follow each other.
func tapped(c trace.Call, segs ...trace.Segment) trace.Call {
	c.Time = begin.Add(412e6)
	for i := range segs {
		segs[i].FromNs = c.Ns
		c.Ns += segs[i].ToNs
		segs[i].ToNs = c.Ns
	}
	c.Segments = segs
	return c
}

func part(actor, state string, ns int64, culprit string) trace.Segment {
	return trace.Segment{Actor: actor, State: state, ToNs: ns, Culprit: culprit}
}

const (
	local  = "127.0.0.1:6379"
	behind = "KEYS from 127.0.0.1:48440 (redis-cli[22907])"
)

// tappedGroups are the blocks of the golden files, in this order.
var tappedGroups = []trace.Group{
	{
		Worst: tapped(trace.Call{Op: "GET", Node: local, Client: "127.0.0.1:48442", Process: "redis-benchmark[22950]"},
			part("client", "send", 20_000, ""), part("server", "busy", 832*ms, behind), part("server", "exec", 3_000,
				""),
			part("client", "run-queue", 400_000, "")),
		Others: 49, LeastNs: 12 * ms, ByCommand: map[string]int{
			"GET": 30, "SET": 15, "HGETALL": 3, "INCR": 1,
			"MGET": 1,
		},
	},
	{Worst: tapped(trace.Call{
		Op: "KEYS", Node: local, Client: "127.0.0.1:48440", Process: "redis-cli[22907]",
		ReplyBytes: 16_800_000,
	},
		part("server", "exec", 600*ms, ""), part("server", "run-queue", 260*ms, "stress-ng[4711]"),
		part("network", "back", 200*ms, ""), part("unknown", "unexplained", 60*ms, ""))},
	{
		Worst: tapped(trace.Call{
			Op: "CLUSTER SHARDS", Node: "10.20.30.40:16379", Client: "10.20.30.41:51234",
			Error: "error reply",
		},
			part("server", "throttled", 73*ms, "/kubepods.slice/redis"), part("server", "blocked", 30*ms, "fdatasync"),
			part("server", "busy", 20*ms, "its own work")),
		Others: 1, LeastNs: 100 * ms, ByCommand: map[string]int{"CLUSTER SHARDS": 2},
	},
	{Worst: tapped(trace.Call{
		Op: "SET", Node: local, Client: "127.0.0.1:48444", Process: "app[99]",
		RequestBytes: 70_000,
	},
		part("server", "busy", 9*ms, "sending a reply to 127.0.0.1:48440"), part("server", "busy", 8*ms, ""),
		part("network", "retransmit", 204*ms, "segment"))},
	{Worst: tapped(trace.Call{Op: "INCR", Node: local, Client: "127.0.0.1:48444", Process: "app[99]"},
		part("server", "exec", 80_000, ""))},
	{Worst: trace.Call{Op: "EVAL", Node: local, Client: "10.9.8.7:48444", Time: begin, Ns: 12 * ms}},
	{Worst: tapped(trace.Call{
		Op: "\x1b[2JGET\u202e", Node: local, Client: "127.0.0.1:1",
		Process: "\x1b]0;owned\x07evil\n[7]",
	}, part("server", "busy", 12*ms, "\x9b31mKEYS\x1b[1A from \u200bx\r"))},
	{Worst: trace.Call{}},
}

func showCalls(t *testing.T, s CallStyle) []byte {
	t.Helper()
	var buf bytes.Buffer
	for _, g := range tappedGroups {
		if err := Calls(&buf, g, s); err != nil {
			t.Fatal(err)
		}
	}
	return buf.Bytes()
}

func TestCallsGolden(t *testing.T) {
	for _, s := range []layout.Style{
		{Width: 80},
		{Width: 80, Unicode: true},
		{Width: 160, Unicode: true},
		{Width: 160},
	} {
		charset := "ascii"
		if s.Unicode {
			charset = "unicode"
		}
		out := showCalls(t, CallStyle{Style: s, SlowNs: 5 * ms, Nodes: s.Unicode})
		golden.Check(t, fmt.Sprintf("calls.%d.%s.golden", s.Width, charset), out)
		if err := golden.Fits(out, s.Width); err != nil {
			t.Error(err)
		}
	}
	golden.Check(t, "calls.80.color.golden", showCalls(t, CallStyle{
		Style:  layout.Style{Width: 80, Color: true, Unicode: true},
		SlowNs: 5 * ms,
	}))
}

// TestCallsNarrow: no width makes it fail, and no line is too long.
func TestCallsNarrow(t *testing.T) {
	for width := range 200 {
		out := showCalls(t, CallStyle{Style: layout.Style{Width: width, Unicode: true}, Nodes: true})
		if err := golden.Fits(out, layout.New(layout.Style{Width: width}).Style.Width); width > 0 && err != nil {
			t.Error(err)
		}
	}
}

func TestCallsSummaryGolden(t *testing.T) {
	full := trace.Summary{
		Seconds: 12.34, Calls: 41_022, Slow: 40, SlowNs: 5 * ms, Matched: 38, Filtered: true,
		Unaligned: 12, Replies: 82_000, Dropped: 2, Unreported: 7, Garbage: 1, LeftOut: 0.4,
		Commands: []trace.Command{
			{Op: "GET", Calls: 38_011, Slow: 30, P50Ns: 45_000, P99Ns: 1_200_000, MaxNs: 832 *
				ms},
			{Op: "CLUSTER SHARDS", Calls: 3, Slow: 2, P50Ns: 700 * ms, P99Ns: 1_400 * ms, MaxNs: 1_400 * ms},
			{Op: "KEYS", Calls: 1, Slow: 1, MaxNs: 600 * ms},
			{Op: "\x1b[2J", Calls: 9, P50Ns: 1000, P99Ns: 2000, MaxNs: 3000},
		},
		Account: []trace.StateTime{
			{Actor: recording.Server, State: recording.Busy, Ns: 31_000 * ms, Share: 0.96},
			{Actor: recording.Server, State: recording.Exec, Ns: 1_000 * ms, Share: 0.031},
			{Actor: recording.Nobody, State: recording.Unexplained, Ns: 100 * ms, Share: 0.003},
			{Actor: recording.Client, State: recording.Send, Ns: ms, Share: 0.0001},
		},
		Waits: []trace.Wait{
			{
				Actor: recording.Server, State: recording.Busy, What: "KEYS from 127.0.0.1 (redis-cli)",
				Calls: 36, Ns: 30_000 * ms,
			},
			{Actor: recording.Client, State: recording.RunQueue, What: "stress-ng", Calls: 1, Ns: ms},
		},
	}
	for i := range 12 {
		full.Commands = append(full.Commands, trace.Command{
			Op: fmt.Sprintf("CMD%d", i), Calls: 1, P50Ns: 1000,
			P99Ns: 1000, MaxNs: 1000,
		})
	}
	for name, s := range map[string]trace.Summary{"full": full, "quiet": {Seconds: 3, SlowNs: 5 * ms}} {
		for _, style := range []layout.Style{{Width: 80, Unicode: true}, {Width: 160, Unicode: true}, {Width: 80}} {
			var buf bytes.Buffer
			if err := CallsSummary(&buf, s, name == "full", style); err != nil {
				t.Fatal(err)
			}
			if err := golden.Fits(buf.Bytes(), style.Width); err != nil {
				t.Error(err)
			}
			golden.Check(t, fmt.Sprintf("calls-%s.%d.%v.golden", name, style.Width, map[bool]string{
				true:  "unicode",
				false: "ascii",
			}[style.Unicode]), buf.Bytes())
		}
	}
}
