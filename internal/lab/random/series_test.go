package random

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"slowpath/internal/lab/servers"
	"slowpath/internal/recording"
)

// TestSeries: a series makes what its directory lacks, judges the rest again, and stops where it is told to.
func TestSeries(t *testing.T) {
	dir := t.TempDir()
	made := 0
	s := Series{Dir: dir, Seed: 3, N: 3, Version: "1", Done: func(Run) { made++ }, JudgeOnly: true}
	if runs, err := s.Play(t.Context()); err != nil || len(runs) > 0 {
		t.Errorf("an empty directory: %v, %v", runs, err)
	}
	kept := Run{Seed: 4, Drawn: Draw(4, ""), Truth: []Truth{{Cause: "slow-command", CostNs: 5, Share: 1}}}
	if err := s.store(kept); err != nil {
		t.Fatal(err)
	}
	w, err := recording.Create(s.path(4, ".slowpath"), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	s.Version = "2"
	runs, err := s.Play(t.Context())
	if err != nil || len(runs) != 1 || made != 1 || runs[0].Seed != 4 || runs[0].Version != "2" {
		t.Fatalf("%d runs, %v: %+v", made, err, runs)
	}
	if again, err := s.load(4); err != nil || again.Version != "2" || again.Truth[0].Cause != kept.Truth[0].Cause {
		t.Errorf("kept: %+v, %v", again, err)
	}
	s.Server = servers.Valkey811
	if _, err := s.Play(t.Context()); err == nil || !strings.Contains(err.Error(), "without --server") {
		t.Errorf("a directory of all servers goes on with one: %v", err)
	}
	s.Server = ""
	other := kept
	other.Seed, other.Only, other.Skipped = 5, servers.Valkey811, "nothing to judge"
	if err := s.store(other); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Play(t.Context()); err == nil || !strings.Contains(err.Error(), "different choices") {
		t.Errorf("a directory with two choices of servers: %v", err)
	}
	if err := os.Remove(s.path(5, ".json")); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	s.JudgeOnly = false
	if runs, err := s.Play(ended); err != nil || len(runs) > 0 {
		t.Errorf("interrupted: %v, %v", runs, err)
	}
	for _, bad := range []string{"", "{}", `{"schema":"slowpath.grade/v1","run":{"seed":5}}`} {
		if err := os.WriteFile(s.path(3, ".json"), []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Play(t.Context()); err == nil {
			t.Errorf("%q is taken as a result", bad)
		}
	}
	if _, err := json.Marshal(Summarise(runs, 3, 3, "2")); err != nil {
		t.Error(err)
	}
}
