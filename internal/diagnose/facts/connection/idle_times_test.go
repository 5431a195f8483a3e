package connection_test

import (
	"slices"
	"testing"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/recording"
)

const idleNode, idleSecond = "10.0.0.1:6379", int64(1e9)

// closedAt gives the idle times of a caller of which one connection is opened at 10 s, and its ends close as given.
func closedAt(closes map[int64]recording.ConnDetail, more ...recording.Event) []connection.IdleTime {
	rec := recording.New()
	rec.SetMeta(recording.MetaNodes, `["`+idleNode+`"]`)
	rec.SetMeta(recording.MetaStart, "0")
	rec.SetMeta(recording.MetaEnd, "600000000000")
	for at, d := range closes {
		open := recording.ConnDetail{Client: "10.0.0.9:1001", PID: 77, Comm: "app", Side: d.Side}
		rec.Event(connEvent(recording.KindOpen, 10*idleSecond, open))
		d.Client, d.PID, d.Comm, d.AgeNs, d.Calls = open.Client, open.PID, open.Comm, at-10*idleSecond, 1
		rec.Event(connEvent(recording.KindClose, at, d))
	}
	for _, e := range more {
		rec.Event(e)
	}
	rec.Index()
	n := facts.New(rec).Nodes[0]
	return slices.DeleteFunc(connection.IdleTimesOf(caller.Callers(n)[0], n.StartNs).Idle,
		func(k connection.IdleTime) bool { return k.Then == connection.UsedAgain })
}

func connEvent(kind string, at int64, d recording.ConnDetail) recording.Event {
	return recording.Event{
		TimeNs: at, Source: recording.SourceTap, Subject: idleNode, Kind: kind, Detail: recording.Detail(d),
	}
}

// TestClosedBeforeTheCall: the server closes an idle connection, and the client notices by its next call, minutes
// later: the server closed it, after the idle time at its FIN. A call that waited when the FIN came had no reply.
func TestClosedBeforeTheCall(t *testing.T) {
	late := recording.ConnDetail{
		Side: recording.Client, By: recording.Server, Reason: recording.CloseReset, IdleNs: 8e6, Waiting: 1, Op: "GET",
		NoticedNs: 100 * idleSecond, PeerIdleNs: 300 * idleSecond,
	}
	waited := late
	waited.PeerWaiting = 1
	// a proxy sends its FIN, and keeps the socket until the next request comes
	front := recording.ConnDetail{
		Side: recording.Client, By: recording.Server, NoticedNs: 100 * idleSecond, PeerIdleNs: 300 * idleSecond,
	}
	back := recording.ConnDetail{Side: recording.Server, By: recording.Server, IdleNs: 5e6, Waiting: 1, Op: "GET"}
	at := 420 * idleSecond
	for name, c := range map[string]struct {
		closes map[int64]recording.ConnDetail
		then   connection.Then
		idleNs int64
		atNs   int64
		late   int
	}{
		"late": {
			map[int64]recording.ConnDetail{at: late},
			connection.ClosedByServer, 300 * idleSecond, at - 100*idleSecond,
			1,
		},
		"waited": {
			map[int64]recording.ConnDetail{at: waited},
			connection.ResetWhenUsed, 410*idleSecond - 8e6,
			at - 100*idleSecond, 0,
		},
		"proxy": {
			map[int64]recording.ConnDetail{at: front, at - 1e6: back},
			connection.ClosedByServer, 300 * idleSecond,
			at - 100*idleSecond, 1,
		},
	} {
		got := closedAt(c.closes)
		if len(got) != 1 {
			t.Errorf("%s: %d ends", name, len(got))
			continue
		}
		k := got[0]
		if k.Then != c.then || k.Ns != c.idleNs || k.AtNs != c.atNs || k.SentLate != c.late || k.Lost() != 1 ||
			k.SentInVain() != (c.late > 0) {
			t.Errorf("%s: %s after %d ns at %d, %d sent late, %d lost", name, k.Then, k.Ns, k.AtNs, k.SentLate,
				k.Lost())
		}
	}
}

// TestRedialOf: a call dials in place of the connection that was closed last, and of no other; not where the old one
// was still in use when it dialled.
func TestRedialOf(t *testing.T) {
	open := func(client string, at, dialNs int64, pid int) recording.Event {
		return connEvent(recording.KindOpen, at, recording.ConnDetail{
			Client: client, PID: pid, Comm: "app", Side: recording.Client, DialNs: dialNs,
		})
	}
	idle := func(ns int64) map[int64]recording.ConnDetail {
		return map[int64]recording.ConnDetail{
			20 * idleSecond: {Side: recording.Client, By: recording.Client, IdleNs: ns},
		}
	}
	// it is closed while the new one is dialled, as go-redis v9 does
	again := open("10.0.0.9:1002", 20*idleSecond+5e6, 17e6, 77)
	if got := closedAt(idle(5*idleSecond), again); len(got) != 1 || got[0].Redial == nil ||
		got[0].Redial.Client != "10.0.0.9:1002" {
		t.Errorf("%+v", got)
	}
	for name, e := range map[string]recording.Event{
		"another process": open("10.0.0.9:1002", 21*idleSecond, 17e6, 78),
		"before it":       open("10.0.0.9:1002", 19*idleSecond, 17e6, 77),
	} {
		if got := closedAt(idle(5*idleSecond), e); len(got) != 1 || got[0].Redial != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := closedAt(idle(1e6), again); len(got) != 1 || got[0].Redial != nil {
		t.Errorf("in use when the other was dialled: %+v", got)
	}
}
