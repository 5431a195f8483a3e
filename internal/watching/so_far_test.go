package watching

import (
	"errors"
	"testing"
	"time"

	"slowpath/internal/cli"
	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/top"
)

// TestUntilSure: two verdicts that are sure of the same cause end a watch that may end; nothing else does.
func TestUntilSure(t *testing.T) {
	sure := cause.Finding{Cause: "slow-command", ExcessShare: 0.9, Confidence: 0.95, Samples: 1000}
	other := sure
	other.Cause = "swap"
	few := sure
	few.Samples = 1
	unsure := sure
	unsure.Confidence = 0.8
	part := sure
	part.ExcessShare = 0.3
	for name, c := range map[string]struct {
		untilSure bool
		verdicts  []cause.Finding
		want      bool
	}{
		"twice":           {true, []cause.Finding{sure, sure}, true},
		"once":            {true, []cause.Finding{sure}, false},
		"another":         {true, []cause.Finding{sure, other}, false},
		"few calls":       {true, []cause.Finding{few, few}, false},
		"not sure":        {true, []cause.Finding{unsure, unsure}, false},
		"a part":          {true, []cause.Finding{part, part}, false},
		"nobody asked":    {false, []cause.Finding{sure, sure}, false},
		"not in a row":    {true, []cause.Finding{sure, unsure, sure}, false},
		"in a row at end": {true, []cause.Finding{unsure, sure, sure}, true},
	} {
		s, ended := &soFar{lasts: time.Minute, untilSure: c.untilSure}, false
		for i, f := range c.verdicts {
			v := &top.Verdict{
				Diagnosis: verdict.Diagnosis{Findings: []cause.Finding{f}}, At: time.Unix(int64(i+1), 0),
			}
			for range 3 { // the same verdict is shown for some seconds
				ended = ended || errors.Is(s.second(&cli.Program{}, top.Frame{Verdict: v}), errSure)
			}
		}
		if ended != c.want {
			t.Errorf("%s: ended %v", name, ended)
		}
	}
}

func TestSoFarLine(t *testing.T) {
	s := soFar{lasts: 30 * time.Second}
	f := top.Frame{Watched: 12 * time.Second, Target: "10.0.0.5:6379", Nodes: 1}
	if got := s.line(f); got != "12s of 30s; watching 10.0.0.5:6379; Ctrl-C ends it" {
		t.Errorf("%q", got)
	}
	f.UsersMinute = top.Numbers{Calls: 5012, Slow: 31}
	f.Verdict = &top.Verdict{Diagnosis: verdict.Diagnosis{Findings: []cause.Finding{{Cause: "slow-command"}}}}
	f.Nodes = 3
	want := "12s of 30s: 5 012 calls, 31 slow, so far slow-command; watching 10.0.0.5:6379 and 2 more; Ctrl-C ends it"
	if got := s.line(f); got != want {
		t.Errorf("%q", got)
	}
}
