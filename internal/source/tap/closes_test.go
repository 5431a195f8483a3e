//go:build linux

package tap

import (
	"testing"
	"time"

	"slowpath/internal/recording"
)

// closesMade is what TestRealCloses makes: who ended each connection, and how, by its client's address.
type closesMade struct{ Wants map[string]closeWants }

// closeWants are as the server's end saw it, and the client's.
type closeWants struct{ Server, Client closeWant }

type closeWant struct{ By, Reason string }

// TestCloses: who ended a connection, and how, is recorded the same at both ends.
func TestCloses(t *testing.T) {
	rec, made := playTape[closesMade](t, "closes", nil)
	checkCloses(t, rec, made)
}

func checkCloses(t *testing.T, rec *recording.Recording, made closesMade) {
	t.Helper()
	seen := 0
	for _, d := range closesOf(rec, "server") {
		w, ok := made.Wants[d.Client]
		if !ok {
			continue
		}
		seen++
		want := w.Server
		if d.Side == recording.Client {
			want = w.Client
		}
		if got := (closeWant{d.By, d.Reason}); got != want {
			t.Errorf("the %s's end: %+v, want %+v", d.Side, got, want)
		}
	}
	if seen != 2*len(made.Wants) {
		t.Errorf("%d ends of %d connections were recorded", seen, len(made.Wants))
	}
	refused := closesOf(rec, "nobody")
	if len(refused) != 1 {
		t.Fatalf("%d connections to nobody", len(refused))
	}
	if d := refused[0]; d.By != "" || d.Reason != recording.CloseRefused || d.DialNs <= 0 || d.AgeNs != 0 {
		t.Errorf("refused: %+v", d)
	}
}

// closesOf are the ends of connections of a node that closed.
func closesOf(rec *recording.Recording, node string) (out []recording.ConnDetail) {
	for _, e := range rec.EventsOf(recording.SourceTap, node, recording.KindClose) {
		out = append(out, recording.DetailOf[recording.ConnDetail](e))
	}
	return out
}

// closesLate is a connection that was idle for a time, closed by the server, and used by its client later.
type closesLate struct {
	Client     string
	Idle, Late time.Duration
}

// TestCloseIsNoticedLate: a client that does not read from an idle connection notices that the server has closed it
// when it sends its next request. How long it had been idle at the server's FIN is known at the client's end alone.
func TestCloseIsNoticedLate(t *testing.T) {
	rec, made := playTape[closesLate](t, "closes-late", nil)
	checkNoticedLate(t, rec, made)
}

func checkNoticedLate(t *testing.T, rec *recording.Recording, made closesLate) {
	t.Helper()
	seen := 0
	for _, d := range closesOf(rec, "server") {
		if d.Client != made.Client || d.Side != recording.Client {
			continue
		}
		seen++
		if d.By != recording.Server || d.Reason != recording.CloseReset || d.PeerIdleNs < int64(made.Idle) ||
			d.NoticedNs < int64(made.Late) {
			t.Errorf("%+v, want the server to have closed it after %v, noticed %v later", d, made.Idle, made.Late)
		}
	}
	if seen != 1 {
		t.Errorf("the client's end closed %d times", seen)
	}
}

// closesWaiting is a connection that its client closed while a call waited.
type closesWaiting struct {
	Client       string
	RequestBytes int64
}

// TestCloseTellsWhatWaited: the close of a connection with a call in flight has the command and the length of
// its request.
func TestCloseTellsWhatWaited(t *testing.T) {
	rec, made := playTape[closesWaiting](t, "closes-waiting", nil)
	checkCloseWaiting(t, rec, made)
}

func checkCloseWaiting(t *testing.T, rec *recording.Recording, made closesWaiting) {
	t.Helper()
	seen := 0
	for _, d := range closesOf(rec, "server") {
		if d.Client != made.Client || d.Waiting == 0 {
			continue
		}
		seen++
		if d.Waiting != 1 || d.By != recording.Client || d.Op != "BLPOP" || d.OpBytes != made.RequestBytes {
			t.Errorf("%+v, want BLPOP of %d bytes waiting", d, made.RequestBytes)
		}
	}
	if seen == 0 {
		t.Error("no end with a call in flight was recorded")
	}
}
