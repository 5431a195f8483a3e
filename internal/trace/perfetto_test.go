package trace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"slowpath/internal/recording"
)

// event is one of the Trace Event Format.
type event struct {
	Ph   string         `json:"ph"`
	Name string         `json:"name"`
	Ts   float64        `json:"ts"`
	PID  int            `json:"pid"`
	TID  int            `json:"tid"`
	Args map[string]any `json:"args"`
}

// written checks the structure of an export: on each track begins and ends are in pairs, and time does not go back. It
// returns the slices by the names of their process and track, children indented by two spaces.
func written(t *testing.T, p *Perfetto) map[string][]string {
	t.Helper()
	var buf bytes.Buffer
	if err := p.Write(&buf); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Unit   string  `json:"displayTimeUnit"`
		Events []event `json:"traceEvents"`
	}
	if err := json.Unmarshal(buf.Bytes(), &doc); err != nil {
		t.Fatalf("%v: %s", err, buf.Bytes())
	}
	processes, tracks := map[int]string{}, map[int]string{}
	last, depth, owner := map[int]float64{}, map[int]int{}, map[int]int{}
	out := map[string][]string{}
	for _, e := range doc.Events {
		switch e.Ph {
		case "M":
			switch e.Name {
			case "process_name":
				processes[e.PID] = e.Args["name"].(string)
			case "thread_name":
				tracks[e.TID], owner[e.TID] = e.Args["name"].(string), e.PID
			}
			continue
		case "B":
			track := processes[e.PID] + " / " + tracks[e.TID]
			line := strings.Repeat("  ", depth[e.TID]) + e.Name
			if c, ok := e.Args["culprit"]; ok {
				line += fmt.Sprintf(" (%v)", c)
			}
			out[track] = append(out[track], line)
			depth[e.TID]++
		case "E":
			depth[e.TID]--
		default:
			t.Errorf("event %+v", e)
		}
		if e.Ts < last[e.TID] || e.Ts < 0 || depth[e.TID] < 0 || depth[e.TID] > 2 || owner[e.TID] != e.PID {
			t.Errorf("track %d: %+v after %v, depth %d", e.TID, e, last[e.TID], depth[e.TID])
		}
		last[e.TID] = e.Ts
	}
	for tid, d := range depth {
		if d != 0 {
			t.Errorf("track %d ends at depth %d", tid, d)
		}
	}
	return out
}

func TestPerfetto(t *testing.T) {
	p := &Perfetto{}
	first := waited("GET", 0, 10*ms, 7)
	// the same process, overlapping
	second := waited("SET", 5*ms, 20*ms, 14)
	// damaged
	second.Segments = append(second.Segments, Segment{
		Actor: recording.Nobody, State: recording.Unexplained,
		FromNs: 20 * ms, ToNs: 30 * ms,
	})
	far := waited("GET", ms, 3*ms, 1)
	far.Process, far.Client = "", "10.0.0.9:4711"
	for _, c := range []Call{second, far, first} {
		p.Call(c)
	}
	work := func(at int64, d recording.ActivityDetail) {
		p.Event(recording.Event{
			TimeNs: begin + at, DurationNs: 8 * ms, Source: recording.SourceTap,
			Subject: "127.0.0.1:6379", Kind: recording.KindActivity, Detail: recording.Detail(d),
		})
	}
	work(0, recording.ActivityDetail{Op: "KEYS", Calls: 3, TID: 42, Client: "127.0.0.1:48440"})
	work(9*ms, recording.ActivityDetail{TID: 42})
	p.Event(recording.Event{
		TimeNs: begin + 2*ms, DurationNs: ms, Source: recording.SourceTap,
		Subject: "127.0.0.1:6379", Kind: recording.KindThrottled, Detail: `{"tid":42}`,
	})
	p.Event(recording.Event{
		TimeNs: begin, DurationNs: ms, Source: recording.SourceTap,
		Subject: recording.ProcessPrefix + "0", Kind: recording.KindRunQueue, Detail: `{"tid":9,"comm":"checkout"}`,
	})
	p.Event(recording.Event{
		TimeNs: begin, DurationNs: ms, Source: recording.SourceTap,
		Subject: recording.ProcessPrefix + "x", Kind: recording.KindBlocked, Detail: `{damaged`,
	})
	p.Event(recording.Event{TimeNs: begin, Source: recording.SourceTap, Kind: recording.KindOpen})
	const keys = "  server busy (KEYS from 127.0.0.1:48440 (redis-cli[22907]))"
	want := map[string][]string{
		"client checkout[0] / calls in flight 1":     {"GET", keys, "  server exec"},
		"client checkout[0] / calls in flight 2":     {"SET", keys, "  server exec", "  unexplained"},
		"client checkout[0] / waits of thread 9":     {"run-queue"},
		"client 10.0.0.9 / calls in flight 1":        {"GET", keys, "  server exec"},
		"server 127.0.0.1:6379 / work of thread 42":  {"KEYS +2", "own work"},
		"server 127.0.0.1:6379 / waits of thread 42": {"throttled"},
		"client [x] / waits of thread 0":             {"blocked"},
	}
	got := written(t, p)
	for track, slices := range want {
		if fmt.Sprint(got[track]) != fmt.Sprint(slices) {
			t.Errorf("%s: %q, want %q", track, got[track], slices)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d tracks: %v", len(got), got)
	}
}

// TestPerfettoRandom: with any overlaps the structure holds, and no call is missing.
func TestPerfettoRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	p := &Perfetto{}
	const calls = 500
	for i := range calls {
		c := waited("GET", r.Int64N(100*ms), ms+r.Int64N(20*ms)+r.Int64N(1000), i%3)
		p.Call(c)
	}
	n := 0
	for _, list := range written(t, p) {
		n += len(slices.DeleteFunc(list, func(s string) bool { return strings.HasPrefix(s, " ") }))
	}
	if n != calls {
		t.Errorf("%d calls of %d", n, calls)
	}
}

func TestPerfettoBounds(t *testing.T) {
	written(t, &Perfetto{}) // an empty one opens too
	p := &Perfetto{size: maxSlices - 2}
	p.Call(waited("GET", 0, ms, 1))
	if p.Omitted != 1 || len(p.calls) != 0 {
		t.Errorf("%d lost, %d kept", p.Omitted, len(p.calls))
	}
}
