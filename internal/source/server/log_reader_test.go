package server

import (
	"strings"
	"testing"

	"slowpath/internal/recording"
)

// TestLargeReplies: entries of COMMANDLOG as valkey 9.1.2 sends them. Their keys are not recorded, only whether they
// are the same.
func TestLargeReplies(t *testing.T) {
	rec := recording.New()
	r := logReader{
		of: commandLogs[1], sink: rec, clock: &serverClock{}, startNs: 100 * sec,
		own: func(e logEntry) bool { return e.name == ClientName },
	}
	reply := arr(
		arr(num(5), num(101), num(1<<62), args("GET", "x"), bulk("10.0.0.7:5000"), bulk("app")),
		arr(num(4), num(101), num(6_000_000), args("GET", "user:secret"), bulk("10.0.0.7:5000"), bulk("app")),
		arr(num(3), num(101), num(5_000_000), args("INFO"), bulk("10.0.0.9:5000"), bulk(ClientName)),
		arr(num(2), num(101), num(5_000_015), args("GET", "user:secret"), bulk("10.0.0.7:5000"), bulk("app")),
		arr(num(1), num(101), num(2_000_000), args("HGETALL", "other"), bulk("10.0.0.7:5001"), bulk("")),
		arr(num(0), num(50), num(2_000_000), args("GET", "before"), bulk("10.0.0.7:5001"), bulk("")),
		arr(num(0), num(101), bulk("many"), args("GET", "x")), num(7), arr(),
		arr(num(0), num(101), num(-1), args("GET")),
	)
	r.read(at(102), parseLog(reply))
	var got []recording.SlowlogDetail
	for _, e := range rec.EventsOf(source, "", recording.KindLargeReply) {
		if e.DurationNs != 0 || strings.Contains(e.Detail, "secret") {
			t.Errorf("%+v", e)
		}
		got = append(got, recording.DetailOf[recording.SlowlogDetail](e))
	}
	if len(got) != 3 || got[0].Command != "HGETALL" || got[1].Bytes != 5_000_015 || got[1].Command != "GET" ||
		got[1].Client != "10.0.0.7:5000" || got[2].Bytes != 6_000_000 || got[1].KeyHash == "" ||
		got[1].KeyHash != got[2].KeyHash || got[0].KeyHash == got[1].KeyHash {
		t.Errorf("%+v", got)
	}
	r.read(at(103), parseLog(reply))
	if n := len(rec.EventsOf(source, "", recording.KindLargeReply)); n != 3 {
		t.Errorf("%d events after the same reply again", n)
	}
}
