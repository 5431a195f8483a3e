package account

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"slowpath/internal/recording"
)

const node = "127.0.0.1:6379"

func ms(n float64) int64 { return int64(n * 1e6) }

// base is a recording with fast calls on a kept connection, so that the baseline is known: 0.2 ms.
func base() *recording.Recording {
	r := recording.New()
	r.SetMeta(recording.MetaTarget, node)
	r.SetMeta(recording.MetaStart, "0")
	for i := range 50 {
		at := ms(float64(i * 20))
		r.Call(recording.Call{
			Source: recording.SourceProbe, Conn: "kept", Op: "PING", Node: node, IntendedNs: at,
			StartNs: at, EndNs: at + ms(0.2),
		})
	}
	return r
}

func slowCall(r *recording.Recording, from, to int64, segs ...recording.Segment) {
	r.Call(recording.Call{
		Source: recording.SourceProbe, Conn: "kept", Op: "PING", Node: node, IntendedNs: from,
		StartNs: from, EndNs: to,
	}, segs...)
}

func hosted(r *recording.Recording) {
	r.Sample(recording.Sample{TimeNs: 0, Source: recording.SourceHost, Subject: node, Name: "main.run_ns"})
}

func state(r *recording.Recording, kind string, from, to int64) {
	r.Event(recording.Event{
		TimeNs: from, DurationNs: to - from, Source: recording.SourceHost, Subject: node,
		Kind:   kind,
		Detail: recording.Detail(recording.ThreadDetail{Share: 1, Cgroup: "/redis", Syscall: "fdatasync"}),
	})
}

func only(t *testing.T, r *recording.Recording) (*Ledger, Account) {
	t.Helper()
	r.Index()
	l := Build(r)
	if len(l.Slow) != 1 {
		t.Fatalf("%d slow calls, want 1", len(l.Slow))
	}
	return l, l.Slow[0]
}

func TestThrottledTimeIsTheServers(t *testing.T) {
	r := base()
	hosted(r)
	state(r, recording.KindThrottled, ms(1010), ms(1080))
	slowCall(r, ms(1000), ms(1081))
	_, a := only(t, r)
	if got := a.In(Server, Throttled); got != ms(70) {
		t.Errorf("throttled %d ns, want 70 ms: %+v", got, a.Segments)
	}
	if got := a.In(Nobody, Unexplained); got <= 0 {
		t.Errorf("what no source saw must stay unexplained: %+v", a.Segments)
	}
}

func TestFrozenGoesBeforeThrottled(t *testing.T) {
	r := base()
	hosted(r)
	state(r, recording.KindThrottled, ms(1000), ms(1100))
	state(r, recording.KindFrozen, ms(1000), ms(1100))
	slowCall(r, ms(1000), ms(1100))
	_, a := only(t, r)
	if a.In(Server, Frozen) != ms(100) || a.In(Server, Throttled) != 0 {
		t.Errorf("%+v", a.Segments)
	}
}

// A connect is answered by the kernel: a frozen server does not make it slow.
func TestConnectIsNotTheServers(t *testing.T) {
	r := base()
	hosted(r)
	state(r, recording.KindFrozen, ms(1000), ms(1100))
	slowCall(r, ms(1000), ms(1100), recording.Segment{
		Actor: App, State: Dial, FromNs: ms(1000), ToNs: ms(1060),
		Culprit: "connect",
	})
	_, a := only(t, r)
	if a.In(App, Dial) != ms(60) || a.In(Server, Frozen) != ms(40) {
		t.Errorf("%+v", a.Segments)
	}
}

func slowlog(r *recording.Recording, command string, second, duration int64) {
	r.Event(recording.Event{
		TimeNs: second, DurationNs: duration, Source: recording.SourceServer, Subject: node,
		Kind: recording.KindSlowlog,
		Detail: recording.Detail(recording.SlowlogDetail{
			Command: command, ArgCount: 2, Client: "10.0.0.7:1",
			WindowNs: int64(time.Second),
		}),
	})
}

func TestBusyServerWithItsCulprit(t *testing.T) {
	r := base()
	hosted(r)
	state(r, recording.KindBusy, ms(1000), ms(1050))
	slowlog(r, "KEYS", ms(1000), ms(50))
	slowCall(r, ms(1010), ms(1050))
	r.Index()
	l := Build(r)
	if len(l.Slow) != 2 { // the probe's call and the KEYS itself
		t.Fatalf("%d slow calls, want 2", len(l.Slow))
	}
	a := l.Slow[1]
	if a.Call.Source == recording.SourceServer {
		a = l.Slow[0]
	}
	if a.In(Server, Busy) != ms(40) || a.Segments[0].Culprit != "KEYS from 10.0.0.7:1" {
		t.Errorf("%+v", a.Segments)
	}
}

// Where the host was watched and saw nothing, a long command in the same second is not the culprit: the thread was not
// busy.
func TestNoCulpritAgainstTheHost(t *testing.T) {
	r := base()
	hosted(r)
	slowlog(r, "GET", ms(1000), ms(80)) // constant time: no call of its own
	slowCall(r, ms(1010), ms(1090))
	_, a := only(t, r)
	if a.In(Server, Busy) != 0 {
		t.Errorf("%+v", a.Segments)
	}
}

// Whatever the sources record, the segments of a call are in order, disjoint, none negative, and add up to the call
// exactly.
func TestSegmentsPartitionTheCall(t *testing.T) {
	kinds := []string{
		recording.KindFrozen, recording.KindThrottled, recording.KindBlocked, recording.KindRunQueue,
		recording.KindBusy,
	}
	rapid.Check(t, func(t *rapid.T) {
		r := base()
		if rapid.Bool().Draw(t, "hosted") {
			hosted(r)
		}
		when := rapid.Int64Range(ms(900), ms(2100))
		long := rapid.Int64Range(0, ms(400))
		for range rapid.IntRange(0, 6).Draw(t, "states") {
			from := when.Draw(t, "from")
			r.Event(recording.Event{
				TimeNs: from, DurationNs: long.Draw(t, "duration"), Source: recording.SourceHost,
				Subject: node, Kind: rapid.SampledFrom(kinds).Draw(t, "kind"),
				Detail: recording.Detail(recording.ThreadDetail{Share: rapid.Float64Range(-1, 2).Draw(t, "share")}),
			})
		}
		for range rapid.IntRange(0, 4).Draw(t, "suspects") {
			slowlog(r, rapid.SampledFrom([]string{"KEYS", "GET", "EVAL"}).Draw(t, "command"), when.Draw(t, "second"),
				long.Draw(t, "d"))
		}
		from := when.Draw(t, "call")
		to := from + rapid.Int64Range(ms(6), ms(900)).Draw(t, "length")
		var segs []recording.Segment
		for range rapid.IntRange(0, 4).Draw(t, "own") {
			a, b := when.Draw(t, "a"), when.Draw(t, "b")
			segs = append(segs, recording.Segment{Actor: App, State: rapid.SampledFrom([]string{
				Dial, PoolWait,
				Handshake,
			}).Draw(t, "state"), FromNs: a, ToNs: b, Culprit: "connect"})
		}
		slowCall(r, from, to, segs...)
		if rapid.Bool().Draw(t, "retransmit") {
			r.Event(recording.Event{
				TimeNs: to, Source: recording.SourceProbe, Subject: node,
				Kind: recording.KindTCPInfo,
				Detail: recording.Detail(recording.TCPDetail{
					CallStartNs: from, RetransDuring: 1,
					SynRetransDuring: 1,
				}),
			})
		}
		r.Index()
		for _, a := range Build(r).Slow {
			at, sum := a.Call.IntendedNs, int64(0)
			for _, s := range a.Segments {
				if s.FromNs != at || s.ToNs <= s.FromNs {
					t.Fatalf("segment %+v does not begin at %d: %+v", s, at, a.Segments)
				}
				at = s.ToNs
				sum += s.Ns()
			}
			if at != a.Call.EndNs || sum != a.DurationNs() || a.ExcessNs < 0 || a.ExcessNs > a.DurationNs() {
				t.Fatalf("adds up to %d, call %d, excess %d", sum, a.DurationNs(), a.ExcessNs)
			}
		}
	})
}
