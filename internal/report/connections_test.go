package report

import (
	"strings"
	"testing"
	"time"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
	"slowpath/internal/report/layout"
)

// TestConnections: a pool's connections are good after up to 4 s, and the server closes them after 5 s; a firewall
// forgets one, which gets no reply; something between the two ends closes another.
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
	connection := func(client string, end recording.ConnDetail, atNs int64, uses ...use) {
		d := recording.ConnDetail{Client: client, PID: 77, Comm: "shop", Side: recording.Client}
		event(recording.KindOpen, 10*second, d)
		for _, u := range uses {
			r.ConnUse(client, recording.ConnUse{TimeNs: u.atNs, Calls: u.calls, IdleNs: u.idleNs})
		}
		end.Client, end.PID, end.Comm, end.AgeNs = d.Client, d.PID, d.Comm, atNs-10*second
		if end.Side == "" {
			end.Side = recording.Client
		}
		event(recording.KindClose, atNs, end)
	}
	pooled := []use{{11 * second, 50, second / 2}, {16 * second, 60, 9 * second / 2}}
	connection("10.0.0.9:1001", recording.ConnDetail{By: recording.Server, IdleNs: 5 * second, Calls: 60}, 21*second,
		pooled...)
	connection("10.0.0.9:1002", recording.ConnDetail{By: recording.Client, IdleNs: second / 10, Calls: 60}, 17*second,
		pooled...)
	connection("10.0.0.9:1003", recording.ConnDetail{
		Waiting: 1, Op: "GET", IdleNs: 2 * second, Calls: 50, Reason: recording.CloseTimedOut,
	}, 313*second, use{11 * second, 50, second / 2})
	event(recording.KindOpen, 10*second, recording.ConnDetail{Client: "10.0.0.9:1004", Side: recording.Server})
	event(recording.KindClose, 70*second, recording.ConnDetail{
		Client: "10.0.0.9:1004", Side: recording.Server, By: recording.Client, AgeNs: 60 * second, IdleNs: 60 * second,
	})
	connection("10.0.0.9:1004", recording.ConnDetail{By: recording.Server, IdleNs: 60 * second, Calls: 1}, 70*second)
	r.Index()

	var text strings.Builder
	if err := ConnectionsOf(r).Text(&text, layout.Style{Width: 100}); err != nil {
		t.Fatal(err)
	}
	want := `shop[77] to 10.0.0.5:6379, 4 connections
IDLE FOR          USED AGAIN  NO REPLY  CLIENT CLOSED  SERVER CLOSED  CLOSED BETWEEN
less than 1s             169         -              1              -               -
2s to 5s                   2         -              -              -               -
5s to 10s                  -         -              -              1               -
1m to 2m                   -         -              -              -               1
5m to 10m                  -         1              -              -               -
Used again and good after 4 s idle: 2 times
Used again, and ended without a reply after 300 s idle: 1 time
Closed by the server after 5 s idle: 1 time
Closed by something between the two ends after 60 s idle: 1 time
`
	if got := text.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	r.SetMeta(recording.MetaKind, "proxy")
	if c := ConnectionsOf(r).Callers[0]; c.Peer != "proxy" || c.head(facts.ClosedByServer) != "PROXY CLOSED" {
		t.Errorf("%+v", c)
	}
}
