package account

import (
	"strings"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
	"pgregory.net/rapid"

	"slowpath/internal/recording"
)

const (
	mainTID = 100
	caller  = "10.0.0.7:1"
)

// tap adds what the tap records.
type tap struct{ *recording.Recording }

func (r tap) wait(kind string, from, to int64, d recording.ThreadDetail) {
	d.TID, d.Share = mainTID, 1
	r.Event(recording.Event{
		TimeNs: from, DurationNs: to - from, Source: recording.SourceTap, Subject: node, Kind: kind,
		Detail: recording.Detail(d),
	})
}

func (r tap) work(from, to int64, d recording.ActivityDetail) {
	if d.TID == 0 {
		d.TID = mainTID
	}
	if d.OnCPUNs == 0 {
		d.OnCPUNs = to - from
	}
	r.Event(recording.Event{
		TimeNs: from, DurationNs: to - from, Source: recording.SourceTap, Subject: node,
		Kind: recording.KindActivity, Detail: recording.Detail(d),
	})
}

func (r tap) call(conn, side, op string, from, to int64, segs ...recording.Segment) {
	r.Call(recording.Call{
		Source: recording.SourceTap, Conn: conn, Op: op, Node: node, Side: side, Client: "worker[7]",
		IntendedNs: from, StartNs: from, EndNs: to,
	}, segs...)
}

// latencies of all calls of a command at one end.
func (r tap) latencies(op string, ns int64, calls int64) {
	r.latenciesOf(recording.SourceTap, op, ns, calls)
}

func (r tap) latenciesOf(source, op string, ns int64, calls int64) {
	h := hdrhistogram.New(1, int64(60e9), 2)
	_ = h.RecordValues(ns, calls) // within its bounds
	b, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		panic(err)
	}
	r.Histogram(recording.Histogram{Second: 1, Source: source, Node: node, Op: op, HDR: b})
}

func (r tap) polled() {
	r.Event(recording.Event{TimeNs: ms(0), Source: recording.SourceServer, Subject: node, Kind: recording.KindPoll})
}

// The host samples every 5 ms; where the tap saw the thread, the account has its exact waits.
func TestExactWaitsGoBeforeSampledOnes(t *testing.T) {
	r := tap{base()}
	hosted(r.Recording)
	state(r.Recording, recording.KindRunQueue, ms(1000), ms(1080))
	r.wait(recording.KindThrottled, ms(1010), ms(1070), recording.ThreadDetail{})
	r.wait(recording.KindRunQueue, ms(1070), ms(1075), recording.ThreadDetail{By: &recording.Task{
		PID:  9,
		Comm: "stress",
	}})
	slowCall(r.Recording, ms(1000), ms(1080))
	_, a := only(t, r.Recording)
	if a.In(Server, Throttled) != ms(60) || a.In(Server, RunQueue) != ms(5) {
		t.Errorf("%+v", a.Segments)
	}
	for _, s := range a.Segments {
		if s.State == RunQueue && s.Culprit != "stress[9]" {
			t.Errorf("culprit %q", s.Culprit)
		}
	}
}

// A kernel that does not report which task is throttled counts it as one that waits for a CPU: then the host is
// right.
func TestThrottledByTheHostWhereTheKernelDoesNotReportIt(t *testing.T) {
	r := tap{base()}
	hosted(r.Recording)
	state(r.Recording, recording.KindThrottled, ms(1010), ms(1070))
	r.wait(recording.KindRunQueue, ms(1010), ms(1070), recording.ThreadDetail{})
	slowCall(r.Recording, ms(1000), ms(1080))
	_, a := only(t, r.Recording)
	if a.In(Server, Throttled) != ms(60) {
		t.Errorf("%+v", a.Segments)
	}
}

// Calls do not wait for the server's other threads.
func TestOtherThreadsAreNotTheMainThread(t *testing.T) {
	r := tap{base()}
	r.Snapshot(recording.Snapshot{Source: recording.SourceHost, Subject: node, Name: "process", Body: `{"pid":100}`})
	r.work(ms(990), ms(990.5), recording.ActivityDetail{Op: "GET", Calls: 1, Client: caller})
	r.Event(recording.Event{
		TimeNs: ms(1000), DurationNs: ms(80), Source: recording.SourceTap, Subject: node,
		Kind:   recording.KindBlocked,
		Detail: recording.Detail(recording.ThreadDetail{TID: mainTID + 1, Share: 1, Syscall: "fdatasync"}),
	})
	slowCall(r.Recording, ms(1000), ms(1080))
	_, a := only(t, r.Recording)
	if a.In(Server, Blocked) != 0 {
		t.Errorf("%+v", a.Segments)
	}
}

func TestSegmentsOfATapCallAreKeptAndNamed(t *testing.T) {
	r := tap{base()}
	r.latencies("client GET", ms(0.1), 1000)
	r.work(ms(1010), ms(1060), recording.ActivityDetail{
		Op: "KEYS", Calls: 1, Args: 2, Client: caller,
		Process: "cron[9]",
	})
	r.call("10.0.0.8:1", "both", "GET", ms(1000), ms(1070),
		recording.Segment{Actor: Network, State: Out, FromNs: ms(1000), ToNs: ms(1001)},
		recording.Segment{Actor: Server, State: Busy, FromNs: ms(1001), ToNs: ms(1065), Culprit: "KEYS"},
		recording.Segment{Actor: Server, State: Exec, FromNs: ms(1065), ToNs: ms(1066)},
		recording.Segment{Actor: Client, State: RunQueue, FromNs: ms(1066), ToNs: ms(1070)})
	l, a := only(t, r.Recording)
	if a.In(Server, Busy) != ms(64) || a.In(Server, Exec) != ms(1) || a.In(Client, RunQueue) != ms(4) || a.In(Network,
		Out) != ms(1) {
		t.Errorf("%+v", a.Segments)
	}
	var held int64
	for _, s := range a.Segments {
		if s.Suspect >= 0 {
			held += s.Ns()
			if w := l.Suspects[s.Suspect]; w.Command != "KEYS" || w.Process != "cron[9]" || w.Client != caller ||
				!w.Busy || w.Stopped {
				t.Errorf("%+v", w)
			}
		}
	}
	if held != ms(50) {
		t.Errorf("%d ns are attributed to the suspect, want 50 ms", held)
	}
	if baseline := a.BaselineNs; baseline < ms(0.09) || baseline > ms(0.11) {
		t.Errorf("baseline %d ns, want the median of all calls", baseline)
	}
}

// Whatever the tap records, the segments of a call stay a partition.
func TestExactSegmentsPartitionTheCall(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := tap{base()}
		when := rapid.Int64Range(ms(900), ms(2100))
		long := rapid.Int64Range(1, ms(400))
		for range rapid.IntRange(0, 6).Draw(t, "waits") {
			from := when.Draw(t, "from")
			r.wait(rapid.SampledFrom([]string{
				recording.KindFrozen, recording.KindThrottled, recording.KindBlocked,
				recording.KindRunQueue,
			}).Draw(t, "kind"), from, from+long.Draw(t, "d"), recording.ThreadDetail{})
		}
		for range rapid.IntRange(0, 6).Draw(t, "works") {
			from := when.Draw(t, "from")
			r.work(from, from+long.Draw(t, "d"), recording.ActivityDetail{Op: rapid.SampledFrom([]string{
				"", "GET",
				"KEYS",
			}).Draw(t, "op"), Calls: rapid.IntRange(0, 3).Draw(t, "calls"), Client: caller})
		}
		if rapid.Bool().Draw(t, "logged") {
			slowlog(r.Recording, "KEYS", when.Draw(t, "second"), long.Draw(t, "d"))
		}
		from := when.Draw(t, "call")
		to := from + rapid.Int64Range(ms(6), ms(900)).Draw(t, "length")
		mid := rapid.Int64Range(from, to).Draw(t, "mid")
		slowCall(r.Recording, from, to)
		r.call(caller, rapid.SampledFrom([]string{"server", "client", "both"}).Draw(t, "side"), "KEYS", from, to,
			recording.Segment{
				Actor: Server, State: rapid.SampledFrom([]string{Busy, Exec, Throttled}).Draw(t, "state"),
				FromNs: from, ToNs: mid,
			})
		r.Index()
		l := Build(r.Recording)
		for _, a := range l.Slow {
			at := a.Call.IntendedNs
			for _, s := range a.Segments {
				if s.FromNs != at || s.ToNs <= s.FromNs {
					t.Fatalf("segment %+v does not begin at %d: %+v", s, at, a.Segments)
				}
				at = s.ToNs
			}
			if at != a.Call.EndNs || a.Weight < 0 {
				t.Fatalf("ends at %d, call at %d, weight %v", at, a.Call.EndNs, a.Weight)
			}
		}
		end := int64(0)
		for _, s := range l.Exact(node) {
			if s.FromNs < end || s.ToNs <= s.FromNs || strings.TrimSpace(s.State) == "" {
				t.Fatalf("exact timeline: %+v after %d", s, end)
			}
			end = s.ToNs
		}
	})
}

// TestServerNotSeenByTheTap: where the tap saw nothing of a server (it was left out, or the thread was frozen before
// the tap started), the states that the host sampled are used, even where the server's process is known.
func TestServerNotSeenByTheTap(t *testing.T) {
	for _, saw := range []bool{false, true} {
		rec := recording.New()
		rec.SetMeta(recording.MetaNodes, `["`+node+`"]`)
		rec.Snapshot(recording.Snapshot{
			Source: recording.SourceHost, Subject: node, Name: "process",
			Body: `{"pid":100}`,
		})
		if saw {
			tap{rec}.work(1, 2, recording.ActivityDetail{Op: "GET"})
		}
		rec.Index()
		if got := mainThreads(rec)[node] != nil; got != saw {
			t.Errorf("the tap saw something: %v; it has the main thread: %v", saw, got)
		}
	}
}

// By what a client introduces itself, and slowpath's own commands, are no calls of users at the server's end.
func TestHandshakesAreNoCalls(t *testing.T) {
	r := tap{base()}
	r.latencies("server GET", ms(1), 2)
	for _, op := range []string{
		"HELLO", "READONLY", "CLIENT TRACKING", "CLIENT CAPA", "COMMAND DOCS", "PING", "CLUSTER INFO", "CLIENT LIST",
	} {
		r.latencies("server "+op, ms(1), 3)
	}
	if h := readTapHistograms(r.Recording, nil).observed(); h.TotalCount() != 2 {
		t.Errorf("%d calls of users, want 2", h.TotalCount())
	}
}

// TestAcknowledgements: WAIT waits for replicas while the event loop serves others; what holds the event loop for as
// long as a slow call takes is why it could not read their acknowledgements.
func TestAcknowledgements(t *testing.T) {
	r := tap{base()}
	r.SetMeta(recording.MetaEnd, "1000000000")
	r.latencies("server GET", ms(0.1), 900)
	waits := recording.Segment{Actor: Server, State: AckWait, FromNs: ms(100), ToNs: ms(200)}
	r.call(caller, Server, "WAIT", waits.FromNs, waits.ToNs, waits)
	r.work(ms(110), ms(113), recording.ActivityDetail{Op: "GET", Calls: 1, Client: "10.0.0.8:1"})
	r.work(ms(120), ms(160), recording.ActivityDetail{Op: "KEYS", Calls: 1, Client: "10.0.0.8:1"})
	l, a := only(t, r.Recording)
	if got := a.In(Server, AckWait); got != ms(60) {
		t.Errorf("%d ns in ack-wait, want 60 ms: %+v", got, a.Segments)
	}
	if got := a.In(Server, Busy); got != ms(40) {
		t.Errorf("%d ns busy, want 40 ms: %+v", got, a.Segments)
	}
	if users := l.Users; users.Calls != 901 || users.Slow != 1 {
		t.Errorf("%d of %d calls slow, want 1 of 901: the kernel counts none that blocks", users.Slow, users.Calls)
	}
}
