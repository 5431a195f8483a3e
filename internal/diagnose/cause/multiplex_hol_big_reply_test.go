package cause_test

import "testing"

func TestMultiplexBigReply(t *testing.T) {
	shared := func(small string, bigBytes int64) edge {
		e := newPath()
		for i := range int64(5) {
			at := (2*i + 1) * 1000 * edgeMs
			e.seen(pathClient, "GET", at, bigBytes, part{"server", "exec", 1, ""}, part{
				"unknown", "unexplained", 60,
				"",
			}, part{"network", "back", 39, ""})
			for k := range int64(4) {
				e.seen(small, "HGET", at+(k+1)*10*edgeMs, 5, part{"unknown", "unexplained", 61 - (k+1)*10, ""},
					part{"network", "back", 39, ""})
			}
		}
		return e
	}
	explainEdge(t, find("multiplex-hol-big-reply"), []edgeCase{
		{
			name: "behind 12 MB", rec: shared(pathClient, 12<<20), found: true,
			evidence: "GET on 10.0.0.7:51000 (app[7]): a reply of 12.6 MB", fix: "on another connection",
		},
		{name: "the big value has its own connection", rec: shared(pathOther, 12<<20)},
		{name: "the replies ahead are small", rec: shared(pathClient, 5000)},
		{name: "big replies alone", rec: newPath().seen(pathClient, "GET", 1000*edgeMs, 12<<20, part{
			"network", "back",
			100, "",
		}).seen(pathClient, "GET", 2000*edgeMs, 12<<20, part{"network", "back", 100, ""})},
		{
			name: "all calls are slow", rec: shared(pathClient, 12<<20).kept(20*edgeMs, 0, 0).kept(20*edgeMs, 0, 0),
			found: true, against: "half of the probe's",
		},
	})
}
