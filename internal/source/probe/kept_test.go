package probe

import (
	"slices"
	"testing"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
	"slowpath/internal/wire/session"
)

// A call that was due while this process was late with the one before it is delayed by this process, not by the server.
func TestLateWithTheCallBefore(t *testing.T) {
	p := &prober{Options: Options{Clock: clock.New()}}
	begin := p.Clock.Now()
	ns := func(ms int) int64 { return begin + int64(ms)*int64(time.Millisecond) }
	var own delays
	waited := func(due, free, sent, end int) (out [][2]int64) {
		own.forgetBefore(ns(due))
		c := recording.Call{IntendedNs: ns(due), StartNs: ns(sent), EndNs: ns(end)}
		for _, s := range p.waits(c, callContext{freeNs: ns(free), own: &own}, session.Timing{}) {
			if s.Actor != recording.Client || s.State != recording.RunQueue {
				t.Errorf("%+v", s)
			}
			out = append(out, [2]int64{(s.FromNs - ns(0)) / 1e6, (s.ToNs - ns(0)) / 1e6})
		}
		return out
	}
	for _, tt := range []struct {
		due, free, sent, end int
		want                 [][2]int64
	}{
		{10, 5, 50, 60, [][2]int64{{10, 50}}}, // this process was late
		// late until then with the call before, and then again; from 50 to 60 that call was at the server
		{30, 60, 62, 70, [][2]int64{{30, 50}, {60, 62}}},
		{40, 70, 70, 80, [][2]int64{{40, 50}, {60, 62}}},
		{65, 80, 80, 90, nil}, // it waited for the server alone
	} {
		got := waited(tt.due, tt.free, tt.sent, tt.end)
		if len(got) != len(tt.want) {
			t.Fatalf("due at %d: %v, want %v", tt.due, got, tt.want)
		}
		for i := range got {
			if got[i] != tt.want[i] {
				t.Errorf("due at %d: %v, want %v", tt.due, got, tt.want)
			}
		}
	}
}

// A reply that was in the socket until this process read it delays the calls after it as well.
func TestLateWithTheReplyBefore(t *testing.T) {
	p := &prober{Options: Options{Clock: clock.New()}}
	begin := p.Clock.Now()
	ns := func(ms int) int64 { return begin + int64(ms)*int64(time.Millisecond) }
	var own delays
	p.waits(recording.Call{IntendedNs: ns(10), StartNs: ns(10), EndNs: ns(100)}, callContext{
		freeNs: begin, own: &own,
	}, session.Timing{ReadDelay: 60 * time.Millisecond})
	got := p.waits(recording.Call{IntendedNs: ns(30), StartNs: ns(100), EndNs: ns(101)},
		callContext{freeNs: ns(100), own: &own}, session.Timing{})
	if len(got) != 1 || got[0].Actor != recording.Client || got[0].State != recording.RunQueue ||
		got[0].FromNs != ns(40) || got[0].ToNs != ns(100) {
		t.Errorf("%+v", got)
	}
}

// What the attempts to open a connection took is known by phase, for the call that was due and for those after it.
func TestDelaysOfAttempts(t *testing.T) {
	const s = int64(time.Second)
	segment := func(state, culprit string, from, to int64) recording.Segment {
		return recording.Segment{Actor: recording.App, State: state, FromNs: from * s, ToNs: to * s, Culprit: culprit}
	}
	attempt := func(k *delays, o session.Opening, from, to, until int64, refused bool) {
		wait := k.attempt(o, from*s, to*s, refused)
		wait.FromNs, wait.ToNs = to*s, until*s
		k.add(wait)
	}
	for name, tt := range map[string]struct {
		made func(*delays)
		from int64
		want []recording.Segment
	}{
		"nothing listens, again and again": {func(k *delays) {
			attempt(k, session.Opening{Connect: time.Millisecond}, 1, 1, 2, false)
			attempt(k, session.Opening{Connect: time.Second}, 2, 3, 4, false)
		}, 2, []recording.Segment{segment(recording.Dial, "reconnect", 2, 4)}},
		"a server that takes the connection and says nothing": {func(k *delays) {
			attempt(k, session.Opening{Connect: time.Second, Handshake: 5 * time.Second}, 1, 7, 8, false)
		}, 0, []recording.Segment{segment(recording.Dial, "reconnect", 1, 2), segment(recording.Handshake, "", 2, 8)}},
		"no answer to the handshake of TLS": {func(k *delays) {
			attempt(k, session.Opening{Connect: time.Second, TLS: 5 * time.Second}, 1, 7, 8, false)
		}, 0, []recording.Segment{segment(recording.Dial, "reconnect", 1, 2), segment(recording.TLS, "", 2, 8)}},
		"no room": {func(k *delays) {
			attempt(k, session.Opening{Connect: time.Second, Handshake: time.Second}, 1, 3, 4, true)
		}, 0, []recording.Segment{segment(recording.Dial, "refused", 1, 4)}},
	} {
		var k delays
		tt.made(&k)
		if got := k.within(tt.from*s, 100*s); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}
