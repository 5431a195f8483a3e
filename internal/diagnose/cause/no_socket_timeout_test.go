package cause_test

import (
	"testing"

	"slowpath/internal/recording"
)

// hanging is a connection of the application that waits for a reply since some time before the end, as its host sees
// it.
func hanging(e edge, client string, waitNs int64, again float64) edge {
	subject := recording.ConnPrefix + client
	e.Snapshot(recording.Snapshot{
		TimeNs: second, Source: recording.SourceHost, Subject: subject,
		Name: recording.SnapshotPendingCaller, Body: recording.Detail(recording.PendingCaller{
			Node: edgeNode, PID: app,
			Comm: "app",
		}),
	})
	for back := int64(8); back >= 0; back -= 2 {
		if w := waitNs - back*second; w > 0 {
			e.Sample(recording.Sample{
				TimeNs: edgeEnd - back*second, Source: recording.SourceHost, Subject: subject,
				Name: "waiting_ns", Value: float64(w),
			})
		}
	}
	e.Sample(recording.Sample{
		TimeNs: edgeEnd, Source: recording.SourceHost, Subject: subject, Name: "waiting_resends",
		Value: again,
	})
	return e
}

func TestNoSocketTimeout(t *testing.T) {
	const client = "10.0.0.7:51000"
	alive := func() edge {
		return newEdge("redis 7.0.15").kept(edgeMs/10, 0, 0).info(map[string]float64{"uptime_in_seconds": 10})
	}
	list := func(e edge, flags, cmd string) edge {
		return e.snapshot(recording.SourceServer, "clients",
			`{"id":1,"addr":"`+client+`","flags":"`+flags+`","cmd":"`+cmd+`","lib_name":"redis-py","lib_ver":"7.1.0"}`)
	}
	unheard := func() edge { // seen by the tap alone
		e := list(alive().lane(client, 100, edgeMs/5, edgeMs), "N", "get")
		for k := range int64(5) {
			e.event(recording.SourceTap, recording.KindRetransmit, 2*second, 200*edgeMs<<k,
				recording.RetransmitDetail{Client: client, From: recording.Client, State: "established"})
		}
		return e
	}
	answered := unheard()
	answered.Call(recording.Call{
		Source: recording.SourceTap, Conn: client, Op: "GET", Node: edgeNode, Slot: -1,
		IntendedNs: 2 * second, StartNs: 2 * second, EndNs: 9 * second,
	})
	over := hanging(list(alive(), "N", "get"), client, 9*second, 0)
	over.Sample(recording.Sample{TimeNs: edgeEnd + 1, Source: recording.SourceHost, Subject: recording.ConnPrefix +
		client, Name: "waiting_ns", Value: 0})
	explainEdge(t, find("no-socket-timeout"), []edgeCase{
		{
			name: "T1: acknowledged, and never answered", rec: hanging(list(alive(), "N", "get"), client, 30*second, 0),
			found: true, evidence: "the longest for 30 s (10.0.0.7:51000)", fix: "socket_timeout to 1",
		},
		{
			name: "T1: retransmitted again and again", rec: hanging(list(alive(), "N", "get"), client, 30*second, 6),
			found: true, evidence: "retransmitted 6 times",
		},
		{
			name: "T1: CLIENT LIST is forbidden", rec: hanging(alive(), client, 30*second, 0), found: true,
			against: "CLIENT LIST is not known",
		},
		{
			name: "T2: seen by the tap alone", rec: unheard(), found: true,
			evidence: "retransmitted 5 times",
		},
		{name: "a wait that a default timeout ends", rec: hanging(list(alive(), "N", "get"), client, 4*second, 0)},
		{name: "BLPOP", rec: hanging(list(alive(), "b", "blpop"), client, 30*second, 0)},
		{name: "a subscriber", rec: hanging(list(alive(), "P", "subscribe"), client, 30*second, 0)},
		{name: "answered in the end", rec: answered},
		{name: "over before the end", rec: over},
		{name: "a server that answers nobody", rec: hanging(list(newEdge("redis 7.0.15"), "N", "get"), client,
			30*second, 0)},
	})
}
