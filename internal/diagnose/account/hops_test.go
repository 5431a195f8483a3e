package account

import (
	"fmt"
	"slices"
	"testing"

	"slowpath/internal/recording"
)

const (
	outerAt, innerAt, serverAt = "10.0.0.1:7000", "10.0.0.1:7001", "10.0.0.1:7002"
	outerPID, innerPID         = 11, 12
	hopMs                      = int64(1e6)
)

// hopRecording has two proxies in front of a server.
func hopRecording() *recording.Recording {
	rec := recording.New()
	rec.SetMeta(recording.MetaNodes, fmt.Sprintf("[%q,%q,%q]", outerAt, innerAt, serverAt))
	rec.SetMeta(recording.MetaStart, "1000000000")
	rec.SetMeta(recording.MetaEnd, "11000000000")
	rec.SetMeta(recording.MetaSlow, "5ms")
	for node, p := range map[string]recording.ProcessOfNode{
		outerAt: {PID: outerPID, Comm: "haproxy"}, innerAt: {PID: innerPID, Comm: "nutcracker"},
	} {
		for _, name := range []string{recording.SnapshotProxy, "process"} {
			rec.Snapshot(recording.Snapshot{
				TimeNs: 1e9, Source: recording.SourceHost, Subject: node, Name: name, Body: recording.Detail(p),
			})
		}
	}
	for port, e := range map[int]recording.ConnEnds{
		1: {Node: outerAt, PID: 99}, 2: {Node: innerAt, PID: outerPID}, 3: {Node: serverAt, PID: innerPID},
	} {
		rec.Snapshot(recording.Snapshot{
			TimeNs: 2e9, Source: recording.SourceTap, Subject: fmt.Sprintf("%s10.0.0.1:%d", recording.ConnPrefix, port),
			Name: recording.SnapshotEnds, Body: recording.Detail(e),
		})
	}
	return rec
}

// hopCall adds a call at a node, from and to milliseconds; parts are the ends of its segments.
func hopCall(rec *recording.Recording, id int64, node, client, op string, from, to int64, parts ...recording.Segment) {
	at := func(v int64) int64 { return 2e9 + v*hopMs }
	for i := range parts {
		parts[i].FromNs, parts[i].ToNs = at(parts[i].FromNs), at(parts[i].ToNs)
	}
	rec.Call(recording.Call{
		ID: id, Source: recording.SourceTap, Conn: "10.0.0.1:" + fmt.Sprint(id), Op: op, Node: node, Client: client,
		IntendedNs: at(from), StartNs: at(from), EndNs: at(to), Side: "both",
	}, parts...)
}

func hopPart(actor, state string, from, to int64) recording.Segment {
	return recording.Segment{Actor: actor, State: state, FromNs: from, ToNs: to}
}

// wholeOf are the segments of a call in milliseconds, with their nodes.
func wholeOf(l *Ledger, i int) (out []string) {
	for _, s := range l.Whole(i) {
		out = append(out, fmt.Sprintf("%d-%d %s %s %s", (s.FromNs-2e9)/hopMs, (s.ToNs-2e9)/hopMs, s.Actor, s.State,
			s.Node))
	}
	return out
}

// TestHops: a call is followed through two proxies; its time is counted once, each part where it passed.
func TestHops(t *testing.T) {
	rec := hopRecording()
	hopCall(rec, 1, outerAt, "app[99]", "GET", 0, 100,
		hopPart(Client, Send, 0, 1), hopPart(Server, Exec, 1, 2), hopPart(recording.Proxy, recording.Forward, 2, 99),
		hopPart(Client, Receive, 99, 100))
	hopCall(rec, 2, outerAt, "app[99]", "GET", 10, 120, // another one at the same time
		hopPart(Server, Exec, 10, 11), hopPart(recording.Proxy, recording.Forward, 11, 120))
	hopCall(rec, 3, innerAt, "haproxy[11]", "GET", 3, 98,
		hopPart(Network, Out, 3, 4), hopPart(Server, Frozen, 4, 60),
		hopPart(recording.Proxy, recording.Forward, 60, 97),
		hopPart(Client, RunQueue, 97, 98))
	hopCall(rec, 4, serverAt, "nutcracker[12]", "GET", 61, 96, hopPart(Server, Exec, 61, 96))
	hopCall(rec, 5, serverAt, "nutcracker[12]", "SET", 62, 70, hopPart(Server, Exec, 62, 70)) // of no slow call
	rec.Index()
	l := Build(rec)
	if len(l.Slow) != 5 || l.Calls() != 3 {
		t.Fatalf("%d accounts, %d calls", len(l.Slow), l.Calls())
	}
	first := slices.IndexFunc(l.Slow, func(a Account) bool { return a.Call.ID == 1 })
	want := []string{
		"0-1 client send " + outerAt, "1-2 proxy exec " + outerAt, "2-3 proxy forward " + outerAt,
		"3-4 network out " + innerAt, "4-60 proxy frozen " + innerAt, "60-61 proxy forward " + innerAt,
		"61-96 server exec " + serverAt, "96-97 proxy forward " + innerAt, "97-98 proxy run-queue " + outerAt,
		"98-99 proxy forward " + outerAt, "99-100 client receive " + outerAt,
	}
	if got := wholeOf(l, first); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	for i, a := range l.Slow {
		root := map[int64]int64{1: 1, 2: 2, 3: 1, 4: 1, 5: 5}[a.Call.ID]
		if got := l.Slow[l.Root(i)].Call.ID; got != root {
			t.Errorf("call %d is a part of %d, want %d", a.Call.ID, got, root)
		}
	}
	if p := l.Populations; len(p) != 1 || p[0].Recorded != 3 {
		t.Errorf("%+v", p)
	}
	var chain []string
	for _, h := range l.HopTimes(rec, l.Chain([]string{serverAt, innerAt, outerAt})) {
		chain = append(chain, fmt.Sprintf("%s %s %v %.0f ms %s %s", h.Node, h.Process, h.Proxy, h.LostNs/1e6, h.Actor,
			h.State))
	}
	want = []string{
		outerAt + " haproxy true 114 ms proxy forward", // 110 of these in the second call
		innerAt + " nutcracker true 59 ms proxy frozen", serverAt + "  false 43 ms server exec",
	}
	if !slices.Equal(chain, want) {
		t.Errorf("%q", chain)
	}
	if !l.OnlyProxiesCall(innerAt) || !l.OnlyProxiesCall(serverAt) || l.OnlyProxiesCall(outerAt) {
		t.Error("who calls the nodes is wrong")
	}
	if n := l.Next(innerAt); !slices.Equal(n, []string{serverAt}) {
		t.Errorf("next: %q", n)
	}
}

// TestHopsWithoutCalls: where the tap recorded no call of a proxy, what is known of the next node's process counts, if
// it explains most of the time; else the proxy had the call.
func TestHopsWithoutCalls(t *testing.T) {
	for stopped, want := range map[int64][]string{
		80: {
			"0-10 unknown unexplained " + innerAt, "10-90 proxy frozen " + innerAt,
			"90-100 unknown unexplained " + innerAt,
		},
		20: {"0-100 proxy forward " + outerAt},
	} {
		rec := hopRecording()
		hopCall(rec, 1, outerAt, "app[99]", "GET", 0, 100, hopPart(recording.Proxy, recording.Forward, 0, 100))
		rec.Event(recording.Event{
			TimeNs: 2e9 + 10*hopMs, DurationNs: stopped * hopMs, Source: recording.SourceTap, Subject: innerAt,
			Kind: recording.KindFrozen, Detail: recording.Detail(recording.ThreadDetail{TID: innerPID}),
		})
		rec.Index()
		l := Build(rec)
		if got := wholeOf(l, 0); l.Calls() != 1 || !slices.Equal(got, want) {
			t.Errorf("stopped for %d ms: %q of %d", stopped, got, l.Calls())
		}
	}
}

// TestNoHops: nodes without a proxy among them are no chain, and a replica that is a client of its master is none.
func TestNoHops(t *testing.T) {
	rec := hopRecording()
	rec.Snapshots = slices.DeleteFunc(rec.Snapshots, func(s recording.Snapshot) bool {
		return s.Name == recording.SnapshotProxy
	})
	hopCall(rec, 1, outerAt, "app[99]", "GET", 0, 100, hopPart(Server, Withheld, 0, 100))
	hopCall(rec, 2, innerAt, "haproxy[11]", "GET", 3, 98, hopPart(Server, Exec, 3, 98))
	rec.Index()
	l := Build(rec)
	if l.Calls() != 2 || l.Chain([]string{outerAt, innerAt, serverAt}) != nil || l.OnlyProxiesCall(innerAt) {
		t.Errorf("%d calls, chain %v", l.Calls(), l.Chain([]string{outerAt, innerAt, serverAt}))
	}
}
