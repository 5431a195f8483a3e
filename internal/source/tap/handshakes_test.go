//go:build linux

package tap

import (
	"reflect"
	"strings"
	"testing"

	"slowpath/internal/recording"
)

// TestHandshakeBegun: an end that does not report each of its first calls, as a client's whose server's end parses for
// both, does not take a later one for the handshake.
func TestHandshakeBegun(t *testing.T) {
	for unseen, want := range map[uint64]int{0: 2, 4: 1} {
		c, rec := newChurner(0)
		c.unseen = unseen
		c.one(true)
		if n := len(rec.EventsOf(recording.SourceTap, "server", recording.KindHandshake)); n != want {
			t.Errorf("%d handshakes are recorded of a connection whose client's end reported call %d first, want %d", n,
				unseen+1, want)
		}
	}
}

// handshakesMade is the handshake of each connection that TestRealHandshakes opens, by its client.
type handshakesMade struct {
	Want map[string]recording.HandshakeDetail
}

// TestHandshakes: the handshake of each new connection is recorded once by an end that saw all of it, and also where
// the server does not know the command. A client's end on a busy host can see all of it, too.
func TestHandshakes(t *testing.T) {
	rec, made := playTape[handshakesMade](t, "handshakes", nil)
	checkHandshakes(t, rec, made)
}

func checkHandshakes(t *testing.T, rec *recording.Recording, made handshakesMade) {
	t.Helper()
	clients, seen := map[string]bool{}, map[string]bool{}
	for _, d := range handshakesOf(rec) {
		if seen[d.Client+d.Side] {
			t.Errorf("%s is recorded twice by the %s's end", d.Client, d.Side)
		}
		seen[d.Client+d.Side] = true
		got := recording.HandshakeDetail{
			Ops: d.Ops, Library: d.Library, Version: d.Version, RoundTrips: d.RoundTrips, Op: d.Op,
		}
		if want := made.Want[d.Client]; !reflect.DeepEqual(got, want) {
			t.Errorf("by the %s's end: %+v, want %+v", d.Side, got, want)
		}
		clients[d.Client] = true
	}
	if len(clients) != len(made.Want) {
		t.Errorf("handshakes of %d connections, want %d", len(clients), len(made.Want))
	}
	for _, h := range rec.Histograms {
		if strings.Contains(h.Op, "LETTUCE") || strings.Contains(h.Op, "REDIS") {
			t.Errorf("a library is taken for a command: %q", h.Op)
		}
	}
}

func handshakesOf(rec *recording.Recording) (out []recording.HandshakeDetail) {
	for _, e := range rec.EventsOf(recording.SourceTap, "", recording.KindHandshake) {
		out = append(out, recording.DetailOf[recording.HandshakeDetail](e))
	}
	return out
}
