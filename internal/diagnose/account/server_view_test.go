package account

import (
	"testing"

	"slowpath/internal/recording"
)

// served adds the server's view of a call of slowpath: what the server did while it was in the socket, in order. ToNs
// of a part is its duration.
func (r tap) served(op string, from int64, parts ...recording.ServedPart) {
	at := int64(0)
	for i := range parts {
		ns := parts[i].ToNs
		parts[i].FromNs, parts[i].ToNs = at, at+ns
		at += ns
	}
	r.Event(recording.Event{
		TimeNs: from, DurationNs: at, Source: recording.SourceTap, Subject: node,
		Kind:   recording.KindServed,
		Detail: recording.Detail(recording.ServedDetail{Op: op, Client: caller, Parts: parts}),
	})
}

func part(actor, state string, ns int64) recording.ServedPart {
	return recording.ServedPart{Actor: actor, State: state, ToNs: ns}
}

// What the server did for less than 0.2 ms at a time is in no event of its own; the server's view of the probe's call
// has the sum of it.
func TestProbeCallsByTheServersView(t *testing.T) {
	r := tap{base()}
	r.served("PING", ms(1002), part(Network, Out, ms(1)), part(Nobody, Unexplained, ms(3)), part(Server, Busy, ms(30)),
		part(Server, RunQueue, ms(5)), part(Server, Exec, ms(1)))
	slowCall(r.Recording, ms(1000), ms(1050))
	_, a := only(t, r.Recording)
	for _, want := range []struct {
		actor, state string
		ns           int64
	}{
		{Server, Busy, ms(30)},
		{Server, RunQueue, ms(5)},
		{Server, Exec, ms(1)},
		{Network, Out, ms(2)},
		{Network, Back, ms(8)},
		{Nobody, Unexplained, ms(4)},
	} {
		if got := a.In(want.actor, want.state); got != want.ns {
			t.Errorf("%s %s: %d ns, want %d: %+v", want.actor, want.state, got, want.ns, a.Segments)
		}
	}
}

// A call that was queued behind another on its connection waited for what that waited for. The time of its own on the
// network is not known and stays open.
func TestProbeCallsBehindAServedOne(t *testing.T) {
	r := tap{base()}
	r.served("GET", ms(990), part(Server, Busy, ms(40)), part(Server, Exec, ms(10)))
	r.Call(recording.Call{
		Source: recording.SourceProbe, Conn: "kept", Op: "PING", Node: node, IntendedNs: ms(1000),
		StartNs: ms(1045), EndNs: ms(1060),
	},
		recording.Segment{Actor: App, State: PoolWait, FromNs: ms(1000), ToNs: ms(1045)})
	_, a := only(t, r.Recording)
	if a.In(Server, Busy) != ms(40) || a.In(Server, Exec) != 0 || a.In(App, PoolWait) != ms(5) || a.In(Network,
		Back) != 0 || a.In(Nobody, Unexplained) != ms(15) {
		t.Errorf("%+v", a.Segments)
	}
}

// Of two calls at once the time of neither on the network is known, only what the server did.
func TestServedCallsThatCannotBeToldApart(t *testing.T) {
	r := tap{base()}
	r.served("PING", ms(1002), part(Server, Busy, ms(30)))
	r.served("PING", ms(1004), part(Server, Busy, ms(30)))
	slowCall(r.Recording, ms(1000), ms(1050))
	_, a := only(t, r.Recording)
	if a.In(Server, Busy) != ms(32) || a.In(Network, Out)+a.In(Network, Back) != 0 {
		t.Errorf("%+v", a.Segments)
	}
}

// Work that the tap reported one by one names the command that the call waited for, and is kept.
func TestServedCallsKeepTheNamesOfWork(t *testing.T) {
	r := tap{base()}
	r.work(ms(1010), ms(1030), recording.ActivityDetail{Op: "KEYS", Calls: 1, Args: 2, Client: "10.0.0.9:1"})
	r.served("PING", ms(1000), part(Server, Busy, ms(50)))
	slowCall(r.Recording, ms(1000), ms(1050))
	l, a := only(t, r.Recording)
	var held int64
	for _, s := range a.Segments {
		if s.Suspect >= 0 && l.Suspects[s.Suspect].Command == "KEYS" {
			held += s.Ns()
		}
	}
	if held != ms(20) || a.In(Server, Busy) != ms(50) {
		t.Errorf("%+v", a.Segments)
	}
}

// A server that keeps a call waiting holds up the calls behind it on the same connection, and no others.
func TestWithheldFromOneConnection(t *testing.T) {
	for _, tt := range []struct {
		name, local string
		withheld    int64
	}{{"behind it", caller, ms(40)}, {"on another connection", "10.0.0.9:1", 0}} {
		t.Run(tt.name, func(t *testing.T) {
			r := tap{base()}
			r.served("GET", ms(1000), part(Server, Withheld, ms(50)))
			slowCall(r.Recording, ms(1010), ms(1060))
			r.Event(recording.Event{
				TimeNs: ms(1060), Source: recording.SourceProbe, Subject: node,
				Kind:   recording.KindTCPInfo,
				Detail: recording.Detail(recording.TCPDetail{CallStartNs: ms(1010), Conn: "kept", Local: tt.local}),
			})
			if _, a := only(t, r.Recording); a.In(Server, Withheld) != tt.withheld {
				t.Errorf("%+v", a.Segments)
			}
		})
	}
}
