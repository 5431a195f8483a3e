package cause_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
)

// edge builds the small recordings that causes of saturation, connections, limits and network are tested on: ten
// seconds of one server, all times in nanoseconds from 0.
type edge struct{ *recording.Recording }

const (
	edgeNode = "10.0.0.5:6379"
	edgeEnd  = int64(10e9)
	edgeMs   = int64(1e6)
)

func newEdge(server string) edge {
	e := edge{recording.New()}
	e.SetMeta(recording.MetaStart, "0")
	e.SetMeta(recording.MetaEnd, fmt.Sprint(edgeEnd))
	e.SetMeta(recording.MetaNodes, `["`+edgeNode+`"]`)
	e.SetMeta(recording.MetaServer, server)
	return e
}

// counters are series that grow evenly over the watch from 0, a point each second.
func (e edge) counters(source string, growth map[string]float64) edge {
	for name, total := range growth {
		for s := range int64(11) {
			e.Sample(recording.Sample{TimeNs: s * 1e9, Source: source, Subject: edgeNode, Name: name, Value: total *
				float64(s) / 10})
		}
	}
	return e
}

func (e edge) info(growth map[string]float64) edge { return e.counters(recording.SourceServer, growth) }

func (e edge) host(growth map[string]float64) edge { return e.counters(recording.SourceHost, growth) }

// level is a value that stays.
func (e edge) level(source, name string, value float64) edge {
	e.Sample(recording.Sample{TimeNs: 0, Source: source, Subject: edgeNode, Name: name, Value: value})
	return e
}

// mainThread is what schedstat says of it, in cores.
func (e edge) mainThread(run, wait float64) edge {
	return e.host(map[string]float64{
		"main.run_ns": run * 10e9, "main.delay_ns": wait * 10e9,
		"main.voluntary_switches": 1000,
	})
}

// kept are calls on the kept connection, one each 50 ms, of which every nth takes slow.
func (e edge) kept(usualNs, slowNs int64, nth int) edge {
	for i := range 200 {
		ns := usualNs + int64(i%7)*usualNs/50
		if nth > 0 && i%nth == nth-1 {
			ns = slowNs
		}
		e.call("kept", int64(i)*50*edgeMs, ns)
	}
	return e
}

// fresh are calls on connections of their own, two per second, each with the time of its TCP connect.
func (e edge) fresh(connectNs, restNs int64) edge {
	for i := range 20 {
		e.freshCall(int64(i)*500*edgeMs, connectNs, restNs)
	}
	return e
}

func (e edge) freshCall(at, connectNs, restNs int64) edge {
	e.call("fresh", at, connectNs+restNs, recording.Segment{
		Actor: "app", State: "dial", Culprit: "connect", FromNs: at,
		ToNs: at + connectNs,
	})
	return e
}

func (e edge) call(conn string, at, ns int64, segs ...recording.Segment) edge {
	e.Call(recording.Call{
		Source: recording.SourceProbe, Conn: conn, Op: "PING", Node: edgeNode, Slot: -1,
		IntendedNs: at, StartNs: at, EndNs: at + ns,
	}, segs...)
	return e
}

// retransmitted: the socket of a call that began at a time retransmitted segments, or its SYN.
func (e edge) retransmitted(conn string, callStart, end int64, segments, syns int64) edge {
	return e.event(recording.SourceProbe, recording.KindTCPInfo, end, 0, recording.TCPDetail{
		CallStartNs: callStart,
		Conn:        conn, RetransDuring: segments, SynRetransDuring: syns,
	})
}

func (e edge) event(source, kind string, at, ns int64, detail any) edge {
	e.Event(recording.Event{
		TimeNs: at, DurationNs: ns, Source: source, Subject: edgeNode, Kind: kind,
		Detail: recording.Detail(detail),
	})
	return e
}

func (e edge) snapshot(source, name string, body any) edge {
	text, ok := body.(string)
	if !ok {
		b, _ := json.Marshal(body)
		text = string(b)
	}
	e.Snapshot(recording.Snapshot{TimeNs: 0, Source: source, Subject: edgeNode, Name: name, Body: text})
	return e
}

// tapped: the tap took part.
func (e edge) tapped() edge {
	tapUsed(e.Recording)
	return e
}

func (e edge) config(kv map[string]string) edge {
	return e.snapshot(recording.SourceServer, "config", kv)
}

// edgeCase is a small recording and what a cause must make of it.
type edgeCase struct {
	name     string
	rec      edge
	found    bool
	title    string // a part of it
	doubted  bool   // something speaks against it
	evidence string // a part of the text of some evidence
	against  string
	fix      string
}

// explainEdge runs one cause over recordings.
func explainEdge(t *testing.T, c cause.Cause, cases []edgeCase) {
	t.Helper()
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			tt.rec.Index()
			f := c.Explain(facts.New(tt.rec.Recording).Nodes[0])
			if (f != nil) != tt.found {
				t.Fatalf("found %v, want %v: %+v", f != nil, tt.found, f)
			}
			if f == nil {
				return
			}
			if !strings.Contains(f.Title, tt.title) {
				t.Errorf("title %q", f.Title)
			}
			if f.Doubts > 0 != tt.doubted {
				t.Errorf("%d doubts: %v", f.Doubts, f.Against)
			}
			holds(t, "evidence", texts(f.Evidence), tt.evidence)
			holds(t, "against", texts(f.Against), tt.against)
			holds(t, "fix", strings.Join(f.FixLines(), "\n"), tt.fix)
			if len(f.Evidence) == 0 || len(f.FixLines()) == 0 {
				t.Errorf("a finding without evidence or fix: %+v", f)
			}
		})
	}
}

func texts(es []cause.Evidence) string {
	var out []string
	for _, e := range es {
		out = append(out, e.Source+": "+e.Text)
	}
	return strings.Join(out, "\n")
}

func holds(t *testing.T, what, text, part string) {
	t.Helper()
	if part != "" && !strings.Contains(text, part) {
		t.Errorf("%s lacks %q:\n%s", what, part, text)
	}
}

// TestHealthyByWhoseCalls: a server that is healthy by slowpath's own calls alone may have clients that wait at their
// end.
func TestHealthyByWhoseCalls(t *testing.T) {
	const own = "what clients wait for at their end was not seen"
	for name, tt := range map[string]struct {
		rec  edge
		says bool
	}{
		"T0: by the probe":          {newEdge("redis 7.0.15").kept(edgeMs/10, 0, 0), true},
		"T2: by the kernel as well": {newEdge("redis 7.0.15").kept(edgeMs/10, 0, 0).tapped(), false},
		"T0: no call was timed": {
			newEdge("redis 7.0.15").level(recording.SourceServer, "uptime_in_seconds", 5),
			false,
		},
	} {
		tt.rec.Index()
		if d := verdict.Diagnose(tt.rec.Recording, "test"); d.Verdict != verdict.Healthy || strings.Contains(d.Summary,
			own) != tt.says {
			t.Errorf("%s: %s: %s", name, d.Verdict, d.Summary)
		}
	}
}

// find is the cause of an id.
func find(id string) cause.Cause {
	for _, c := range cause.Catalogue() {
		if c.ID == id {
			return c
		}
	}
	panic("no cause " + id)
}
