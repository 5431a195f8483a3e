package benchmark

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slowpath/internal/lab/random"
)

// after is what redis-cli prints in a terminal.
const after = `127.0.0.1:6379> SLOWLOG GET 128
1) 1) (integer) 14
   2) (integer) 1764400000
   3) (integer) 61000
   4) 1) "KEYS"
      2) "*"
   5) "127.0.0.1:50000"
   6) "report"
2) 1) (integer) 13
   2) (integer) 1764399990
   3) (integer) 39000
   4) 1) "EVAL"
      2) "while true do end"
   5) "127.0.0.1:50001"
   6) ""
127.0.0.1:6379> LATENCY LATEST
1) 1) "command"
127.0.0.1:6379> LATENCY DOCTOR
Dave, I have observed latency spikes in this Redis instance. You don't mind talking about it, do you Dave?

1. command: 5 latency spikes (average 20ms, mean deviation 10ms, period 1.60 sec). Worst all time event 61ms.
2. fork: 1 latency spikes (average 300ms, mean deviation 0ms, period 9.00 sec). Worst all time event 300ms.

127.0.0.1:6379> CLIENT LIST
id=3 addr=127.0.0.1:50000 fd=8 name=report cmd=keys
`

func TestRules(t *testing.T) {
	for name, of := range map[string]struct {
		got  Answer
		want string
	}{
		"LATENCY DOCTOR":  {LatencyDoctor(after), "fork-latency 0.75, slow-command 0.25"},
		"SLOWLOG":         {Slowlog(after), "slow-command 0.61, lua-or-multi-long 0.39"},
		"nothing is slow": {Slowlog("127.0.0.1:6379> SLOWLOG GET 128\n(empty array)\n"), "healthy"},
		"no such command": {LatencyDoctor("127.0.0.1:6379> LATENCY DOCTOR\n(error) ERR unknown command\n"), "healthy"},
	} {
		if got := said(of.got); got != of.want {
			t.Errorf("%s: %s, want %s", name, got, of.want)
		}
	}
}

func said(a Answer) string {
	if a.Healthy {
		return "healthy"
	}
	var out []string
	for _, c := range a.Causes {
		out = append(out, fmt.Sprintf("%s %.2f", c.Cause, c.Share))
	}
	return strings.Join(out, ", ")
}

// TestGrade: answers are compared with the truth; an incident without one counts as one that a tool cannot tell.
func TestGrade(t *testing.T) {
	s := Set{t.TempDir()}
	if err := os.WriteFile(filepath.Join(s.Dir, "answers.jsonl"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for id, run := range map[string]random.Run{
		"1": {Seed: 1, Truth: []random.Truth{{Cause: "slow-command", Share: 0.8, Culprit: "report"}}},
		"2": {Seed: 2, Truth: []random.Truth{{Cause: "healthy"}}},
	} {
		for _, dir := range []string{s.path(id), s.path(truthDir)} {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.write(s.path(id, incidentFile), Incident{Schema: IncidentSchema, ID: id}); err != nil {
			t.Fatal(err)
		}
		if err := s.write(s.path(truthDir, id+".json"), run); err != nil {
			t.Fatal(err)
		}
	}
	var lines bytes.Buffer
	if err := WriteAnswers(&lines, []Answer{
		{Schema: AnswerSchema, Tool: "right", Incident: "1", Causes: []AnswerCause{{
			Cause: "slow-command", Share: 0.75, Culprit: "report",
		}}},
		{Schema: AnswerSchema, Tool: "right", Incident: "2", Healthy: true},
		{Schema: AnswerSchema, Tool: "wrong", Incident: "2", Causes: []AnswerCause{{Cause: "rtt-floor", Share: 1}}},
	}); err != nil {
		t.Fatal(err)
	}
	answers, err := ReadAnswers(&lines)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Grade(answers)
	if err != nil || len(r.Tools) != 2 || r.Incidents != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	right, wrong := r.Tools[0], r.Tools[1]
	if right.Tool != "right" || right.Figures.FirstNamed.Count != 1 || right.Figures.HealthyWrong.Count != 0 ||
		right.Figures.ShareClose.Count != 1 || right.Figures.CulpritNamed.Count != 1 {
		t.Errorf("%+v", right)
	}
	if wrong.Answered != 1 || wrong.Figures.FirstNamed.Of != 1 || wrong.Figures.HealthyWrong.Count != 1 {
		t.Errorf("%+v", wrong)
	}
	var table strings.Builder
	if r.Table(&table); !strings.Contains(table.String(), "1 of 1") {
		t.Error(table.String())
	}
	for name, bad := range map[string][]Answer{
		"twice":   {answers[0], answers[0]},
		"unknown": {{Tool: "x", Incident: "3"}},
	} {
		if _, err := s.Grade(bad); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestBadAnswers(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON":      "slow-command\n",
		"no schema":    `{"incident":"1"}`,
		"no incident":  `{"schema":"` + AnswerSchema + `"}`,
		"a long line":  `{"schema":"` + strings.Repeat("x", mostAnswer) + `"}`,
		"no tool":      `{"schema":"` + AnswerSchema + `","incident":"1"}`,
		"a bad name":   `{"schema":"` + AnswerSchema + `","incident":"1","tool":"\u001b[2J"}`,
		"another kind": `{"schema":"slowpath.grade/v1","incident":"1"}`,
	} {
		if _, err := ReadAnswers(strings.NewReader(text)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := (Set{filepath.Join(t.TempDir(), "none")}).Incidents(); err == nil {
		t.Error("no directory: no error")
	}
	if _, err := (Set{t.TempDir()}).Incidents(); err == nil {
		t.Error("no incidents: no error")
	}
}
