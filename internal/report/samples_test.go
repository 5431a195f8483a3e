package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
)

const ms = int64(time.Millisecond)

var begin = time.Date(2026, 10, 5, 14, 2, 11, 0, time.UTC)

// samples are the diagnoses of the golden files.
var samples = map[string]verdict.Diagnosis{
	"empty":        {},
	"healthy":      healthy(),
	"throttled":    throttled(),
	"inconclusive": inconclusive(),
	"cluster":      cluster(),
	"long":         long(),
	"hostile":      hostile(),
	"proxied":      proxied(),
}

var bothTiers = []recording.SourceStatus{
	{Name: "probe", Used: true},
	{Name: "server", Used: true},
	{Name: "host", Used: true},
	{Name: "tap", Why: "needs CAP_BPF and CAP_PERFMON"},
}

var noTap = recording.BlindSpot{
	What: "calls of the applications themselves", Why: "needs CAP_BPF and CAP_PERFMON",
	Enable: "run slowpath as root, or setcap cap_bpf,cap_perfmon+ep bin/slowpath",
}

func healthy() verdict.Diagnosis {
	return verdict.Diagnosis{
		Schema: verdict.Schema, Version: "0.1", Verdict: verdict.Healthy,
		Summary: "Healthy: none of 2 980 calls in 30 s took 5 ms or more; median 110 µs, slowest 1.9 ms.",
		Target: verdict.Target{
			Address: "127.0.0.1:6379", Kind: "standalone", Server: "redis 7.0.15",
			Nodes: []string{"127.0.0.1:6379"},
		},
		Window: verdict.Window{Start: begin, Seconds: 30}, Sources: bothTiers, BlindSpots: []recording.BlindSpot{noTap},
		Latency: verdict.Latency{
			Calls: 2980, SlowThresholdNs: 5 * ms, P50Ns: 110_000, P99Ns: 420_000, P999Ns: ms,
			MaxNs: 1_900_000,
		},
		Populations: []verdict.Population{{
			Name: account.OfProbe, Calls: 2980, P50Ns: 110_000, P99Ns: 420_000, P999Ns: ms, MaxNs: 1_900_000,
		}},
		Cost: []cause.Evidence{
			{Source: "server", Text: "slowpath's own commands took 12.10 ms of server time on " +
				"127.0.0.1:6379 (0.040 %)"},
			{Source: "host", Text: "slowpath itself used 1.21 % of one core"},
		},
	}
}

func throttled() verdict.Diagnosis {
	d := healthy()
	d.Verdict = verdict.Findings
	d.Summary = "The server's cgroup has too little CPU quota: the kernel stops it until the next period. This " +
		"explains 91 % of the time that callers lost."
	d.Latency = verdict.Latency{
		Calls: 2980, SlowCalls: 38, SlowThresholdNs: 5 * ms, P50Ns: 190_000, P99Ns: 61 * ms,
		P999Ns: 84 * ms, MaxNs: 84_912_000,
	}
	d.Populations = []verdict.Population{{
		Name: account.OfProbe, Calls: 2980, SlowCalls: 38, RecordedSlowCalls: 38, FailedCalls: 2, P50Ns: 190_000,
		P99Ns: 61 * ms, P999Ns: 84 * ms, MaxNs: 84_912_000,
	}}
	d.Account = []verdict.State{
		{Actor: "server", State: "throttled", Ns: 1_312 * ms, Share: 0.905},
		{Actor: "server", State: "busy", Ns: 101 * ms, Share: 0.0697},
		{Actor: "unknown", State: "unexplained", Ns: 26 * ms, Share: 0.0179},
		{
			Actor: "server", State: "exec",
			Ns: 6 * ms, Share: 0.0041,
		},
		{Actor: "network", State: "out", Ns: 2 * ms, Share: 0.0013},
		{
			Actor: "network", State: "back", Ns: 2 * ms,
			Share: 0.0013,
		},
	}
	d.Excess = verdict.Excess{Ns: 1_442 * ms, UnexplainedNs: 130 * ms}
	d.LostTime = verdict.LostTime{
		States: []verdict.LostState{
			{Actor: "server", State: "throttled", Ns: 1_309 * ms},
			{Actor: "server", State: "busy", Ns: 101 * ms},
			{Actor: "unknown", State: "unexplained", Ns: 26 * ms},
			{Actor: "server", State: "exec", Ns: 6 * ms},
		},
		Causes: []verdict.LostToCause{
			{Cause: "server-cfs-throttled", Ns: 1_312 * ms, Cells: []int64{1_211 * ms, 101 * ms, 0, 0}},
			{
				Cause: "slow-command", Because: "server-cfs-throttled", Ns: 101 * ms,
				Cells:    []int64{0, 101 * ms, 0, 0},
				Overlaps: []verdict.Overlap{{Cause: "server-cfs-throttled", Ns: 42 * ms}},
			},
			{Cause: verdict.Unexplained, Ns: 130 * ms, Cells: []int64{98 * ms, 0, 26 * ms, 6 * ms}},
		},
	}
	for i, lost := range []int64{1_309, 101, 26, 6} {
		d.Account[i].LostNs = lost * ms
	}
	d.Findings = []cause.Finding{
		{
			Cause: "server-cfs-throttled", Layer: "server-host", SlowCalls: 36, Of: 38,
			ExcessShare: 0.91, Confidence: 0.99, Grade: cause.Seen, Samples: 36,
			Title: "The server's cgroup has too little CPU quota: the kernel stops it until the next period",
			Evidence: []cause.Evidence{
				{Source: "host", Text: "36 of 38 slow calls waited while the server was " +
					"throttled, up to 82.4 ms in one call"},
				{Source: "host", Text: "cpu.stat of /system.slice/redis-server.service: throttled in 212 of 300 " +
					"periods, " +
					"14.2 s in all"},
				{Source: "host", Text: "its quota is 0.30 cores (30000 µs of every 100000 µs)"},
				{Source: "server", Text: "SLOWLOG shows no command that could have held up the others"},
			},
			FixSteps: []remedy.Step{
				{
					ID: "remove-cpu-limit", Kind: remedy.Command,
					Text:    "Remove the CPU limit of redis-server.service, or set at least 300 %",
					Command: "systemctl set-property redis-server.service CPUQuota=",
					Undo:    "systemctl set-property redis-server.service CPUQuota=30%",
					Risk:    "without a limit it may take CPU time from its neighbours",
					Proof:   &remedy.Proof{Proven: true, LostBefore: 5.25, LostAfter: 0.0586, Of: 3.81},
				},
				{
					ID: "room-for-all-threads", Kind: remedy.Change, Or: true,
					Text: "If a limit must stay: main thread, io-threads, background threads and the fork child of " +
						"BGSAVE share it; give it at least 2 cores more than io-threads, and allow bursts",
				},
			},
			See: []string{
				"https://docs.kernel.org/scheduler/sched-bwc.html",
				"https://github.com/kubernetes/kubernetes/issues/67577",
			},
		},
		{
			Cause: "slow-command", Layer: "server", SlowCalls: 2, Of: 38, ExcessShare: 0.07, Confidence: 0.81,
			Grade: cause.Counted, Samples: 2,
			Because: "server-cfs-throttled",
			Title:   "A slow command holds up the others",
			Evidence: []cause.Evidence{{Source: "server", Text: "KEYS of 10.0.0.7:51514 (billing-worker) took 52.1 " +
				"ms at 14:02:31"}},
			Against: []cause.Evidence{{Source: "host", Text: "the server was throttled for 40.2 ms of it"}},
			FixSteps: []remedy.Step{
				{
					ID: "in-steps", Kind: remedy.Change, Restart: "the application",
					Text: "Instead of KEYS from 10.0.0.7:51514 use SCAN with COUNT 100-1000",
				},
				{
					ID: "forbid-command", Kind: remedy.Command, Text: "Forbid it to the user of your application",
					Command: "redis-cli ACL SETUSER <the user of your application> -keys", Or: true,
					Asks: []string{"<the user of your application>"}, Since: "Redis 6.0",
				},
			},
			See: []string{"https://redis.io/docs/latest/commands/keys/"},
		},
	}
	d.Worst = []verdict.Worst{
		{
			Time: begin.Add(4812 * time.Millisecond), Source: "probe", Conn: "kept", Op: "GET", Node: "127.0.0.1:6379",
			Ns: 84_912_000, SameStall: 11, Segments: []verdict.Part{
				{Actor: "network", State: "out", FromNs: 0, ToNs: 45_000},
				{
					Actor: "server", State: "throttled",
					FromNs: 45_000, ToNs: 82_445_000, Culprit: "/system.slice/redis-server.service",
				},
				{Actor: "unknown", State: "unexplained", FromNs: 82_445_000, ToNs: 84_767_000},
				{Actor: "server", State: "exec", FromNs: 84_767_000, ToNs: 84_867_000},
				{Actor: "network", State: "back", FromNs: 84_867_000, ToNs: 84_912_000},
			},
		},
		{
			Time: begin.Add(20 * time.Second), Source: "probe", Conn: "fresh", Op: "PING", Node: "127.0.0.1:6379",
			Ns: 71_300_000, OwnDelayNs: 8 * ms, SameStall: 1, Segments: []verdict.Part{
				{Actor: "app", State: "dial", FromNs: 0, ToNs: 120_000, Culprit: "connect"},
				{Actor: "app", State: "handshake", FromNs: 120_000, ToNs: 300_000},
				{Actor: "server", State: "busy", FromNs: 300_000, ToNs: 18_300_000, Culprit: "KEYS of 10.0.0.7:51514 " +
					"(billing-worker)"},
				{
					Actor: "server", State: "throttled", FromNs: 18_300_000, ToNs: 58_500_000,
					Culprit: "/system.slice/redis-server.service",
				},
				{
					Actor: "server", State: "busy", FromNs: 58_500_000, ToNs: 71_180_000,
					Culprit: "KEYS of 10.0.0.7:51514 (billing-worker)",
				},
				{Actor: "server", State: "exec", FromNs: 71_180_000, ToNs: 71_300_000},
			},
		},
		{
			Time: begin.Add(25107 * time.Millisecond), Source: "probe", Conn: "kept", Op: "GET", Node: "127.0.0.1:6379",
			Ns: 61_000_000, Segments: many(61*ms, 40),
		},
	}
	return d
}

// many is a call that was stopped and went on many times.
func many(ns int64, n int) []verdict.Part {
	var out []verdict.Part
	at, states := int64(0), []string{"busy", "run-queue", "throttled"}
	for i := range n {
		to := ns * int64(i+1) * int64(i+1) / int64(n*n)
		out = append(out, verdict.Part{Actor: "server", State: states[i%3], FromNs: at, ToNs: to})
		at = to
	}
	return out
}

func inconclusive() verdict.Diagnosis {
	d := healthy()
	d.Verdict = verdict.Inconclusive
	d.Summary = "Inconclusive: 12 of 2 980 calls in 30 s were slow (up to 140 ms), and nothing that could be seen " +
		"explains them."
	d.Target.Address, d.Target.Server = "cache.prod.internal:6379", "valkey 8.1.1"
	d.Latency.SlowCalls, d.Latency.MaxNs = 12, 140*ms
	own := &d.Populations[0]
	own.SlowCalls, own.RecordedSlowCalls, own.MaxNs = 12, 12, 140*ms
	d.Sources = []recording.SourceStatus{
		{Name: "probe", Used: true},
		{Name: "server", Used: true},
		{Name: "host", Why: "the server is not on this host"},
		{Name: "tap", Why: "needs CAP_BPF and CAP_PERFMON"},
	}
	d.Account = []verdict.State{
		{Actor: "unknown", State: "unexplained", Ns: 590 * ms, Share: 0.97},
		{Actor: "client", State: "run-queue", Ns: 18 * ms, Share: 0.03},
	}
	d.BlindSpots = []recording.BlindSpot{
		noTap,
		{
			What: "the server's process and its cgroup", Why: "the server is not on this host",
			Enable: "run slowpath on the host of the server: slowpath doctor 127.0.0.1:6379",
		},
		{What: "slow commands", Why: "SLOWLOG is forbidden: NOPERM this user has no permissions to run the " +
			"'slowlog|get' command", Enable: "ACL SETUSER watcher +slowlog|get +latency +client|list"},
		{What: "the configuration", Why: "CONFIG is forbidden by the provider"},
	}
	d.Worst = []verdict.Worst{{
		Time: begin.Add(time.Second), Source: "probe", Conn: "kept", Op: "GET",
		Node: "cache.prod.internal:6379", Ns: 140 * ms,
		Segments: []verdict.Part{{Actor: "client", State: "run-queue", FromNs: 0, ToNs: 3 * ms}, {
			Actor: "unknown",
			State: "unexplained", FromNs: 3 * ms, ToNs: 140 * ms,
		}},
	}}
	return d
}

func cluster() verdict.Diagnosis {
	d := throttled()
	d.Target = verdict.Target{Address: "10.0.1.1:7000", Kind: "cluster", Server: "redis 6.0.16"}
	d.Cost = nil
	d.Populations = append([]verdict.Population{{
		Name: account.OfUsers, At: recording.Server, Calls: 1_275_307, SlowCalls: 90, RecordedSlowCalls: 88,
		FailedCalls: 1200, P50Ns: 90_000, P99Ns: 200_000, P999Ns: 2 * ms, MaxNs: 438 * ms,
	}, {
		Name: account.OfLoad, Calls: 5000, SlowCalls: 5, RecordedSlowCalls: 5, P50Ns: 90_000, P99Ns: 200_000,
		P999Ns: 6 * ms, MaxNs: 7 * ms,
	}}, d.Populations...)
	d.Populations = append(d.Populations, verdict.Population{
		Name: account.OfSlowlog, Calls: 1, SlowCalls: 1, RecordedSlowCalls: 1, MaxNs: 9 * ms,
	})
	f := d.Findings[0]
	f.Evidence = nil
	for i := range 6 {
		node := fmt.Sprintf("10.0.1.%d:7000", i+1)
		d.Target.Nodes = append(d.Target.Nodes, node)
		d.Cost = append(d.Cost, cause.Evidence{Source: "server", Text: "slowpath's own commands took 12.10 ms of " +
			"server time on " + node + " (0.040 %)"})
		for _, what := range []string{
			"throttled in 212 of 300 periods", "its quota is 0.30 cores",
			"SLOWLOG is empty",
		} {
			f.Evidence = append(f.Evidence, cause.Evidence{Source: "host", Text: node + ": " + what})
		}
	}
	d.Findings = []cause.Finding{f}
	d.LostTime.Causes = slices.Delete(d.LostTime.Causes, 1, 2)
	for i := range d.Worst {
		d.Worst[i].Node = d.Target.Nodes[i]
	}
	d.BlindSpots = nil
	return d
}

// proxied has a stopped proxy between a load balancer and the server.
func proxied() verdict.Diagnosis {
	d := throttled()
	d.Summary = "The proxy process was stopped (nutcracker at 10.0.0.6:6379, hop 2 of 3). This explains 98 % of the " +
		"time that callers lost."
	d.Findings, d.LostTime = nil, verdict.LostTime{}
	d.Worst = d.Worst[:1]
	d.Worst[0].Segments[1].Actor, d.Worst[0].Segments[1].Node = recording.Proxy, "10.0.0.6:6379"
	hop := func(node, kind, process string, added, lost int64, share float64) verdict.Hop {
		return verdict.Hop{
			Node: node, Kind: kind, Process: process, Source: recording.SourceTap, Calls: 184_512, P50Ns: 3 * added,
			P99Ns: 9 * added, AddedP50Ns: added, AddedP99Ns: 4 * added, LostNs: lost, Share: share,
		}
	}
	d.Hops = []verdict.Hop{
		hop("10.0.0.5:6379", "proxy", "haproxy", 81_300, 11e6, 0.015),
		hop("10.0.0.6:6379", "proxy", "nutcracker", 54_200, 710e6, 0.983),
		hop("redis.shop.svc.cluster.local:6379", "server", "redis-server", 31_000, 1e6, 0.002),
	}
	h := &d.Hops[1]
	h.Actor, h.State = recording.Proxy, recording.Frozen
	h.Summary = "nutcracker at 10.0.0.6:6379, hop 2 of 3, adds 98 % of the time that slow calls lost: its process " +
		"was stopped."
	return d
}

func long() verdict.Diagnosis {
	d := throttled()
	d.Worst = d.Worst[:1]
	pod := "/kubepods.slice/kubepods-burstable.slice/" +
		"kubepods-burstable-pod2e1f9c1c_8a1d_4c1b_9d5f_0a1b2c3d4e5f.slice/cri-containerd-" +
		strings.Repeat("9f", 32) + ".scope"
	d.Worst[0].Segments[1].Culprit = pod
	d.Findings, d.LostTime.Causes = d.Findings[:1], slices.Delete(d.LostTime.Causes, 1, 2)
	d.Findings[0].Evidence = []cause.Evidence{
		{Source: "host", Text: "cpu.stat of " + pod + ": throttled in 212 of " +
			"300 periods, 14.2 s in all"},
		{Source: "server", Text: "clients that waited: " + strings.Repeat("10.0.0.7:51514 (billing-worker), ", 40)},
		{Source: "server", Text: "名前が日本語のクライアント " + strings.Repeat("接続", 60)},
	}
	d.Findings[0].FixSteps = []remedy.Step{{
		ID: "remove-cpu-limit", Kind: remedy.Command, Text: "Remove the CPU limit of cgroup " + pod,
		Command: "echo max > /sys/fs/cgroup" + pod + "/cpu.max",
	}}
	return d
}

// hostile has texts that drive a terminal where one would expect names.
func hostile() verdict.Diagnosis {
	d := throttled()
	d.Populations[0].Name = "\x1b[2J"
	evil := "evil\x1b[2J\x1b]0;owned\x07\u009b31m\r\n\tname\x00\u202egnp.exe \x1bPq\x1b\\\xff"
	d.Summary, d.Target.Address, d.Target.Server = evil, evil, evil
	d.Account[0].Actor, d.Account[1].State = evil, evil
	d.LostTime.States[0].Actor, d.LostTime.States[1].State, d.LostTime.Causes[1].Cause = evil, evil, evil
	f := &d.Findings[0]
	f.Title, f.Cause, f.Layer, f.Because = evil, evil, evil, evil
	f.Evidence = []cause.Evidence{{Source: evil, Text: evil}}
	f.FixSteps = []remedy.Step{
		{Kind: remedy.Command, Text: evil, Command: "echo 0 > /sys/" + evil, Undo: evil, Risk: evil, Restart: evil},
		{Kind: remedy.Setting, Text: evil, Library: evil, Option: evil, From: evil, To: evil, Where: evil, Since: evil},
		{Kind: remedy.Change, Text: "Ask " + evil, Asks: []string{evil}, Proof: &remedy.Proof{Why: evil}},
	}
	f.See = []string{"https://" + evil}
	w := &d.Worst[0]
	w.Op, w.Conn, w.Node, w.Segments[0].Culprit = evil, evil, evil, evil
	d.BlindSpots = []recording.BlindSpot{{What: evil, Why: evil, Enable: evil}}
	d.Cost = []cause.Evidence{{Source: evil, Text: evil}}
	return d
}
