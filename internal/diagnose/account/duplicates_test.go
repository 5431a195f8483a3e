package account

import (
	"testing"

	"slowpath/internal/recording"
)

// A call that both ends recorded, and one that SLOWLOG has too, is one call.
func TestCallsCountOnce(t *testing.T) {
	r := tap{base()}
	r.latencies("client KEYS", ms(50), 2)
	r.latencies("client GET", ms(0.1), 1000)
	r.work(ms(1005), ms(1055), recording.ActivityDetail{Op: "KEYS", Calls: 1, Client: caller})
	r.call(caller, "client", "KEYS", ms(1000), ms(1060), recording.Segment{
		Actor: Nobody, State: Unexplained,
		FromNs: ms(1000), ToNs: ms(1060),
	})
	r.call(caller, "server", "KEYS", ms(1004), ms(1056), recording.Segment{
		Actor: Server, State: Exec, FromNs: ms(1004),
		ToNs: ms(1056),
	})
	slowlog(r.Recording, "KEYS", ms(1000), ms(50))
	// SLOWLOG of the helper names the connection 10.0.0.7:1, as caller does.
	l, a := only(t, r.Recording)
	if a.Call.Side != "client" || l.Users.Recorded != 1 || l.Users.Slow != 2 || l.Users.Calls != 1002 ||
		l.Probe.Slow != 0 {
		t.Errorf("%+v users %+v probe %+v", a.Call, l.Users, l.Probe)
	}
	if a.In(Server, Busy) != ms(50) || a.ExcessNs < ms(59) {
		t.Errorf("the baseline of a command that is always slow is what the path can do: excess %d, %+v", a.ExcessNs,
			a.Segments)
	}
}
