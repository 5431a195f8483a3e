//go:build linux

package tap

import (
	"slices"
	"testing"

	"slowpath/internal/recording"
)

// acks are the acknowledgements of a recording by connection.
func acks(rec *recording.Recording) (events map[string][]recording.Event, details map[string][]recording.AckDetail) {
	events, details = map[string][]recording.Event{}, map[string][]recording.AckDetail{}
	for _, e := range rec.EventsOf(recording.SourceTap, "server", recording.KindAcknowledged) {
		d := recording.DetailOf[recording.AckDetail](e)
		events[d.Client], details[d.Client] = append(events[d.Client], e), append(details[d.Client], d)
	}
	return events, details
}

// acknowledgedMade is what TestRealAcknowledged makes.
type acknowledgedMade struct {
	Early, Good, Far string // clients: before acknowledgements were watched, on a good path, on a slow one
	Slow             int    // calls that were made slow, on the good path
	Bytes, PathNs    int64  // of the reply on the slow path, and what the path takes for it
}

// TestAcknowledged: seen from the server's end alone, a reply on a slow path is acknowledged as late as the path takes;
// a slow call's is recorded however early it comes, and that of another call on a good path is not.
func TestAcknowledged(t *testing.T) {
	rec, made := playTape[acknowledgedMade](t, "acknowledged", nil)
	checkAcknowledged(t, rec, made)
}

func checkAcknowledged(t *testing.T, rec *recording.Recording, made acknowledgedMade) {
	t.Helper()
	events, details := acks(rec)
	slowOnes := map[int64]recording.Call{} // of the good path, by their end: on a busy machine some ECHO is slow, too
	asked := 0.0                           // since their call was slow
	for _, c := range rec.Calls {
		if c.Side != recording.Server {
			t.Errorf("seen from another end, too: %+v", c)
		}
		if slices.ContainsFunc(events[c.Conn], func(e recording.Event) bool { return e.TimeNs == c.EndNs }) {
			asked++
		}
		if c.Conn == made.Good {
			slowOnes[c.EndNs] = c
		}
	}
	if n := len(events[made.Early]); n != 0 {
		t.Errorf("the acknowledgement of a reply that was sent before: %+v", details[made.Early])
	}
	if n := len(events[made.Good]); n != len(slowOnes) || n < made.Slow {
		t.Errorf("%d acknowledgements on a good path of %d slow calls, %d of them made so: %+v", n, len(slowOnes),
			made.Slow, details[made.Good])
	}
	for i, e := range events[made.Good] {
		c, ok := slowOnes[e.TimeNs]
		if !ok {
			t.Errorf("the reply of no slow call: %+v", e)
		}
		if d := details[made.Good][i]; d.Retransmitted != 0 || d.WindowClosed || d.Unacked != c.ReplyBytes {
			t.Errorf("%+v, of %+v", d, c)
		}
	}
	far := 0
	for i, e := range events[made.Far] {
		d := details[made.Far][i]
		if d.Unacked < made.Bytes/2 {
			continue // of PING
		}
		far++
		if d.Unacked > 2*made.Bytes || d.MinWaitNs > e.DurationNs || d.WindowClosed {
			t.Errorf("%d ns: %+v", e.DurationNs, d)
		}
		if e.DurationNs < made.PathNs {
			t.Errorf("%d bytes were acknowledged in %d ns, which the path cannot do", made.Bytes, e.DurationNs)
		}
	}
	if far != 1 {
		t.Errorf("%d acknowledgements on the slow path: %+v", far, details[made.Far])
	}
	all := float64(len(rec.EventsOf(recording.SourceTap, "server", recording.KindAcknowledged)))
	late, _ := rec.Series(recording.SourceTap, recording.SubjectSelf, "tap.late_acks").Last()
	if late == 0 || late != all-asked {
		t.Errorf("%v late acknowledgements counted, of %v that are recorded %v are of slow calls", late, all, asked)
	}
}

// unreadMade are a client that did not read, and one whose reply was lost on its way.
type unreadMade struct{ Unread, Lost string }

// TestAcknowledgedByOneThatDoesNotRead: where the client does not read, its window is recorded as closed; where
// segments are lost, as retransmitted.
func TestAcknowledgedByOneThatDoesNotRead(t *testing.T) {
	rec, made := playTape[unreadMade](t, "acknowledged-unread", nil)
	checkUnread(t, rec, made)
}

func checkUnread(t *testing.T, rec *recording.Recording, made unreadMade) {
	t.Helper()
	_, details := acks(rec)
	if d := details[made.Unread]; len(d) != 1 || !d[0].WindowClosed {
		t.Errorf("of the client that did not read: %+v", d)
	}
	if d := details[made.Lost]; len(d) != 1 || d[0].Retransmitted == 0 || d[0].WindowClosed {
		t.Errorf("of the reply that was lost: %+v", d)
	}
}
