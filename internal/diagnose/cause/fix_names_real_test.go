package cause_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/house/needs"
	"slowpath/internal/recording"
)

// TestNamesInFixes: what a process or a cgroup is called runs nothing where a fix is pasted into a shell.
func TestNamesInFixes(t *testing.T) {
	needs.Real(t)
	ran := filepath.Join(t.TempDir(), "ran")
	for _, name := range []string{
		"x; touch " + ran, "$(touch " + ran + ")", "'; touch " + ran + "; '",
		"`touch " + ran + "`",
	} {
		for cause, rec := range map[string]hostCase{
			"process-frozen": newHostCase(true).threads(1, 0).stalled(recording.KindFrozen,
				recording.ThreadDetail{Cgroup: "/" + name}),
			"server-cpu-contention": newHostCase(true).threads(2, 4.2).stalled(recording.KindRunQueue,
				recording.ThreadDetail{}),
		} {
			rec.Event(recording.Event{
				TimeNs: 1, Source: recording.SourceHost, Subject: hostNode, Kind: recording.KindNeighbours,
				Detail: recording.Detail([]recording.Neighbour{{PID: 7, Command: name, Cores: 0.9}}),
			})
			rec.Index()
			d := verdict.Diagnose(rec.Recording, "test")
			if len(d.Findings) == 0 || d.Findings[0].Cause != cause {
				t.Fatalf("%s: %+v", cause, d.Findings)
			}
			shown := strings.Join(d.Findings[0].Fix, "\n")
			if !strings.Contains(shown, "touch") {
				t.Errorf("%s does not name it: %s", cause, shown)
			}
			for _, line := range d.Findings[0].Fix {
				if strings.Contains(line, "touch") { // it fails: there is neither such a cgroup nor such a command
					sh := exec.Command("/bin/sh", "-c", line)
					sh.Dir = filepath.Dir(ran)
					_ = sh.Run()
				}
			}
			if _, err := os.Stat(ran); err == nil {
				t.Fatalf("%s runs what a name says: %s", cause, shown)
			}
		}
	}
}
