package verdict

import (
	"testing"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/recording"
)

// slowCall is the account of a call that waited from fromMs to toMs for one thing, and was served then.
func slowCall(conn string, fromMs, toMs int64, actor, state, culprit string) account.Account {
	const ms = int64(1e6)
	from, to := fromMs*ms, toMs*ms
	return account.Account{
		Call: recording.Call{
			Source: recording.SourceTap, Conn: conn, Op: "GET", Node: "10.0.0.1:6379", Client: "worker[7]",
			IntendedNs: from - ms, StartNs: from - ms, EndNs: to + ms,
		},
		Segments: []account.Segment{
			{Actor: account.Network, State: account.Out, FromNs: from - ms, ToNs: from, Suspect: -1},
			{Actor: actor, State: state, FromNs: from, ToNs: to, Culprit: culprit, Suspect: -1},
			{Actor: account.Server, State: account.Exec, FromNs: to, ToNs: to + ms, Suspect: -1},
		},
	}
}

// TestWorstOfEachStall: of the calls that waited for the same at the same time the slowest is shown.
func TestWorstOfEachStall(t *testing.T) {
	const keys = "KEYS from 10.0.0.7:1"
	busy := func(conn string, from, to int64) account.Account {
		return slowCall(conn, from, to, account.Server, account.Busy, keys)
	}
	for name, tt := range map[string]struct {
		slow []account.Account
		same []int // per call that is shown
	}{
		"none":                       {nil, []int{}},
		"one stall":                  {[]account.Account{busy("a", 0, 100), busy("b", 2, 100)}, []int{1}},
		"two stalls of one command":  {[]account.Account{busy("a", 0, 100), busy("b", 200, 280)}, []int{0, 0}},
		"the next stall, just begun": {[]account.Account{busy("a", 0, 100), busy("b", 90, 180)}, []int{0, 0}},
		"the command itself": {[]account.Account{
			slowCall("k", 0, 100, account.Server, account.Exec, keys), busy("a", 0, 99),
		}, []int{1}},
		"another state of the server": {[]account.Account{
			busy("a", 0, 100), slowCall("b", 0, 99, account.Server, account.Throttled, "quota"),
		}, []int{1}},
		"the server, and then the client": {[]account.Account{
			busy("a", 0, 100), slowCall("b", 0, 99, account.Client, account.OffCPU, ""),
		}, []int{0, 0}},
		"a client asleep, and in the run queue": {[]account.Account{
			slowCall("a", 0, 200, account.Client, account.OffCPU, ""),
			slowCall("b", 0, 199, account.Client, account.RunQueue, "stress"),
			slowCall("c", 0, 198, account.Client, account.Receive, ""),
		}, []int{2}},
		"packets of two connections": {[]account.Account{
			slowCall("a", 0, 200, account.Network, account.Retransmit, "segment"),
			slowCall("b", 0, 199, account.Network, account.Retransmit, "segment"),
		}, []int{0, 0}},
		"one client stands still": {[]account.Account{
			slowCall("a", 0, 200, account.Client, account.Receive, ""),
			slowCall("b", 0, 199, account.Client, account.Receive, ""),
		}, []int{1}},
		"four stalls": {[]account.Account{
			busy("a", 0, 100), busy("a", 200, 290), busy("a", 400, 480), busy("a", 600, 670), busy("b", 600, 670),
			busy("b", 401, 480),
		}, []int{0, 0, 1}},
	} {
		got := worst(&account.Ledger{Slow: tt.slow})
		if len(got) != len(tt.same) {
			t.Errorf("%s: %d calls, want %d", name, len(got), len(tt.same))
			continue
		}
		for i, w := range got {
			if w.SameStall != tt.same[i] || i > 0 && w.Ns > got[i-1].Ns || len(w.Segments) != 3 {
				t.Errorf("%s: call %d: %+v, want %d in the same stall", name, i, w, tt.same[i])
			}
		}
	}
}

// TestWorstWithoutOwnDelay: a call is not the slowest because slowpath itself was late.
func TestWorstWithoutOwnDelay(t *testing.T) {
	late, slow := slowCall("kept", 0, 100, account.Server, account.Busy, ""), slowCall("a", 300, 350, account.Server,
		account.Busy, "")
	late.Call.Source, late.OwnDelayNs = recording.SourceProbe, 90e6
	got := worst(&account.Ledger{Slow: []account.Account{late, slow}})
	if len(got) != 2 || got[0].Conn != "a" || got[1].OwnDelayNs != 90e6 || got[1].Ns != 102e6 {
		t.Errorf("%+v", got)
	}
}
