package account

import (
	"testing"

	"slowpath/internal/recording"
)

// queued adds a call on the probe's kept connection that was due before it could be sent.
func queued(r *recording.Recording, due, sent, end float64, segs ...recording.Segment) {
	r.Call(recording.Call{
		Source: recording.SourceProbe, Conn: "kept", Op: "PING", Node: node, IntendedNs: ms(due),
		StartNs: ms(sent), EndNs: ms(end),
	}, segs...)
}

// dueAt is the account of the call that was due at a time.
func dueAt(t *testing.T, r *recording.Recording, due float64) Account {
	t.Helper()
	r.Index()
	for _, a := range Build(r).Slow {
		if a.Call.IntendedNs == ms(due) {
			return a
		}
	}
	t.Fatalf("no slow call was due at %g ms", due)
	return Account{}
}

// What held up the call before on the connection held up this one: that slowpath read its reply late, and
// retransmissions that the tap saw.
func TestBehindACallThatIsKnown(t *testing.T) {
	r := base()
	queued(r, 1000, 1000, 1100, recording.Segment{
		Actor: Client, State: RunQueue, FromNs: ms(1040), ToNs: ms(1100),
		Culprit: "slowpath",
	})
	queued(r, 1020, 1100, 1101)
	a := dueAt(t, r, 1020)
	if got := a.In(Client, RunQueue); got != ms(60) {
		t.Errorf("late %d ns, want 60 ms: %+v", got, a.Segments)
	}
	if got := a.In(Nobody, Unexplained); got < ms(19) || got > ms(21) {
		t.Errorf("of the call before 20 ms are not known, so they are not of this one: %d ns: %+v", got, a.Segments)
	}

	r = base()
	r.Event(recording.Event{
		TimeNs: ms(1100), Source: recording.SourceProbe, Subject: node, Kind: recording.KindTCPInfo,
		Detail: recording.Detail(recording.TCPDetail{CallStartNs: ms(1000), Conn: "kept", Local: caller}),
	})
	r.Event(recording.Event{
		TimeNs: ms(1010), DurationNs: ms(80), Source: recording.SourceTap, Subject: node,
		Kind:   recording.KindRetransmit,
		Detail: recording.Detail(recording.RetransmitDetail{Client: caller, From: "server"}),
	})
	queued(r, 1000, 1000, 1100)
	queued(r, 1050, 1100, 1101) // fast once it was sent: its own socket reported nothing
	if a := dueAt(t, r, 1050); a.In(Network, Retransmit) != ms(40) {
		t.Errorf("%+v", a.Segments)
	}
}

// Nothing is taken over from a call of which nothing is known, nor from one on another connection.
func TestBehindACallThatIsNot(t *testing.T) {
	r := base()
	queued(r, 1000, 1000, 1100)
	queued(r, 1020, 1100, 1101)
	if a := dueAt(t, r, 1020); a.In(Nobody, Unexplained) < ms(79) {
		t.Errorf("%+v", a.Segments)
	}

	r = base()
	slow := recording.Segment{Actor: Client, State: RunQueue, FromNs: ms(1040), ToNs: ms(1100), Culprit: "slowpath"}
	queued(r, 1000, 1000, 1100, slow)
	for i := range 3 { // the baseline there
		at := ms(float64(i * 100))
		r.Call(recording.Call{
			Source: recording.SourceProbe, Conn: "fresh", Op: "PING", Node: node, IntendedNs: at,
			StartNs: at, EndNs: at + ms(0.5),
		})
	}
	r.Call(recording.Call{
		Source: recording.SourceProbe, Conn: "fresh", Op: "PING", Node: node, IntendedNs: ms(1020),
		StartNs: ms(1030), EndNs: ms(1110),
	})
	for i := range 3 {
		at := ms(float64(i * 100))
		r.Call(recording.Call{
			Source: recording.SourceProbe, Conn: "kept", Op: "PING", Node: "10.0.0.9:6379",
			IntendedNs: at, StartNs: at, EndNs: at + ms(0.5),
		})
	}
	r.Call(recording.Call{
		Source: recording.SourceProbe, Conn: "kept", Op: "PING", Node: "10.0.0.9:6379",
		IntendedNs: ms(1021), StartNs: ms(1100), EndNs: ms(1101),
	})
	for _, due := range []float64{1020, 1021} {
		if a := dueAt(t, r, due); a.In(Client, RunQueue) != 0 {
			t.Errorf("due at %g ms: %+v", due, a.Segments)
		}
	}
}

// A call's own work at the server is not that of those behind it: for them the server was busy.
func TestBehindWorkAtTheServer(t *testing.T) {
	r := base()
	queued(r, 1000, 1000, 1100, recording.Segment{Actor: Server, State: Exec, FromNs: ms(1000), ToNs: ms(1090)})
	queued(r, 1020, 1100, 1101)
	if a := dueAt(t, r, 1020); a.In(Server, Busy) != ms(70) || a.In(Server, Exec) > ms(1) {
		t.Errorf("%+v", a.Segments)
	}
}
