package cause_test

import (
	"testing"

	"slowpath/internal/recording"
)

func TestBlockingCommandOnSharedConnection(t *testing.T) {
	waits := func(client, op string) edge {
		e := newPath()
		for i := range int64(5) {
			at := (2*i + 1) * 1000 * edgeMs
			e.event(recording.SourceTap, recording.KindBlockingCommand, at, 300*edgeMs, recording.BlockingCommandDetail{
				Op:     op,
				Client: client, Process: "app[7]", Behind: 3,
			})
			e.seen(pathClient, "GET", at+50*edgeMs, 5, part{"unknown", "unexplained", 250, ""}, part{
				"server", "exec",
				1, "",
			})
		}
		return e
	}
	explainEdge(t, find("blocking-cmd-on-shared-conn"), []edgeCase{
		{
			name: "GETs behind XREAD BLOCK", rec: waits(pathClient, "XREAD"), found: true,
			evidence: "XREAD on 10.0.0.7:51000 (app[7]) blocked 5 times", fix: "Give XREAD its own connection",
		},
		{
			name: "GETs behind WAIT", rec: waits(pathClient, "WAIT"), found: true,
			fix: "WAIT belongs on the connection that wrote",
		},
		{name: "BLPOP has its own connection", rec: waits(pathOther, "BLPOP")},
		{name: "all calls are slow", rec: func() edge {
			e := waits(pathClient, "BLPOP")
			return e.kept(20*edgeMs, 0,
				0).kept(20*edgeMs, 0, 0)
		}(), found: true, against: "on their own connection"},
		{name: "nothing is slow", rec: newPath()},
	})
}
