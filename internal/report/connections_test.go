package report

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/house/golden"

	"slowpath/internal/recording"
	"slowpath/internal/report/layout"
)

// TestConnections: a pool's connections are good after up to 4 s, and the server closes them after 5 s; of one the
// client notices with a call that fails, and then a call dials again. A firewall forgets one, which gets no reply;
// something between the two ends closes another.
func TestConnections(t *testing.T) {
	const node, second = "10.0.0.5:6379", int64(time.Second)
	r := recording.New()
	r.SetMeta(recording.MetaStart, "0")
	r.SetMeta(recording.MetaEnd, "600000000000")
	r.SetMeta(recording.MetaNodes, `["`+node+`"]`)
	event := func(kind string, at int64, d recording.ConnDetail) {
		r.Event(recording.Event{
			TimeNs: at, Source: recording.SourceTap, Subject: node, Kind: kind, Detail: recording.Detail(d),
		})
	}
	type use struct{ atNs, calls, idleNs int64 }
	connectionOf := func(client string, end recording.ConnDetail, atNs int64, uses ...use) {
		d := recording.ConnDetail{Client: client, PID: 77, Comm: "shop", Side: recording.Client}
		event(recording.KindOpen, 10*second, d)
		for _, u := range uses {
			r.ConnUse(client, recording.ConnUse{
				TimeNs: u.atNs, Calls: u.calls, IdleNs: u.idleNs, IdleMaxNs: -1,
			})
		}
		end.Client, end.PID, end.Comm, end.AgeNs = d.Client, d.PID, d.Comm, atNs-10*second
		if end.Side == "" {
			end.Side = recording.Client
		}
		event(recording.KindClose, atNs, end)
	}
	pooled := []use{{11 * second, 50, second / 2}, {16 * second, 60, 9 * second / 2}}
	connectionOf("10.0.0.9:1001", recording.ConnDetail{By: recording.Server, IdleNs: 5 * second, Calls: 60}, 21*second,
		pooled...)
	connectionOf("10.0.0.9:1002", recording.ConnDetail{By: recording.Client, IdleNs: second / 10, Calls: 60}, 17*second,
		pooled...)
	connectionOf("10.0.0.9:1003", recording.ConnDetail{
		Waiting: 1, Op: "GET", IdleNs: 2 * second, Calls: 50, Reason: recording.CloseTimedOut,
	}, 313*second, use{11 * second, 50, second / 2})
	event(recording.KindOpen, 10*second, recording.ConnDetail{Client: "10.0.0.9:1004", Side: recording.Server})
	event(recording.KindClose, 70*second, recording.ConnDetail{
		Client: "10.0.0.9:1004", Side: recording.Server, By: recording.Client, AgeNs: 60 * second, IdleNs: 60 * second,
	})
	connectionOf("10.0.0.9:1004", recording.ConnDetail{By: recording.Server, IdleNs: 60 * second, Calls: 1}, 70*second)
	connectionOf("10.0.0.9:1005", recording.ConnDetail{
		By: recording.Server, IdleNs: 8e6, Calls: 60, NoticedNs: 30 * second, PeerIdleNs: 6 * second, Waiting: 1,
		Op: "GET", Reason: recording.CloseReset,
	}, 52*second, pooled...)
	event(recording.KindOpen, 52*second+40e6, recording.ConnDetail{
		Client: "10.0.0.9:1006", PID: 77, Comm: "shop", Side: recording.Client, DialNs: 17e6,
	})
	r.Index()

	for width := 40; width <= 240; width += 10 {
		var narrow bytes.Buffer
		if err := ConnectionsOf(r, true).Text(&narrow, layout.Style{Width: width}); err != nil {
			t.Fatal(err)
		}
		if err := golden.Fits(narrow.Bytes(), width); err != nil {
			t.Error(err)
		}
	}
	var text strings.Builder
	if err := ConnectionsOf(r, true).Text(&text, layout.Style{Width: 100}); err != nil {
		t.Fatal(err)
	}
	want := `shop[77] to 10.0.0.5:6379, 6 connections
IDLE FOR       GOOD  NO REPLY  BY CLIENT  BY SERVER  BETWEEN  RE-DIALLED
less than 1s    228         -          1          -        -           -
2s to 5s          3         -          -          -        -           -
5s to 10s         -         -          -          2        -           1
1m to 2m          -         -          -          -        1           -
5m to 10m         -         1          -          -        -           -
- Used again and good: 3 times, after 4 s idle
- Used again, and ended without a reply: 1 time, after 5m idle
- Closed by the client: 1 time, after 100 ms idle
- Closed by the server: 2 times, after 5 s to 6 s idle; 1 of 2 times the client sent on it after
  that, in vain; 1 of 2 times a call dialled again and waited 17 ms
- Closed by something between the two ends: 1 time, after 60 s idle
- Good up to 4 s idle; used again, and ended without a reply from 5m on; closed by the server from
  5 s on; closed by something between the two ends from 60 s on
00:00:17.000Z  10.0.0.9:1002 closed by the client after 100 ms idle, 7 s old, 60 calls
00:00:21.000Z  10.0.0.9:1001 closed by the server after 5 s idle, 11 s old, 60 calls
00:00:22.000Z  10.0.0.9:1005 closed by the server after 6 s idle, 12 s old, 60 calls, the client
               sent on it after that, in vain, open at the client for another 30 s, a call dialled
               again 30 s later and waited 17 ms
00:01:10.000Z  10.0.0.9:1004 closed by something between the two ends after 60 s idle, 60 s old, 1
               call
00:05:13.000Z  10.0.0.9:1003 used again, and ended without a reply after 5m idle (timed-out), 5m3s
               old, 50 calls, 1 more without a reply

GOOD: calls that came after so long idle and had their reply, or were the first. The others:
connections that were closed after so long idle, by whom, or that failed a call. RE-DIALLED: for so
many of them a call waited for a new connection.
`
	if got := text.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	r.SetMeta(recording.MetaKind, "proxy")
	if c := ConnectionsOf(r, false).Callers[0]; c.Peer != "proxy" || c.head(connection.ClosedByServer) != "BY PROXY" {
		t.Errorf("%+v", c)
	}
}
