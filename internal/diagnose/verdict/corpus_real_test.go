package verdict_test

import (
	"flag"
	"os"
	"os/exec"
	"strings"
	"testing"

	"slowpath/internal/diagnose/corpus"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/house/needs"
)

var update = flag.Bool("update", false, "write testdata/corpus.golden again")

// TestCorpus: the recordings of the corpus are judged as they always were, with all sources, without the tap,
// and by a connection alone. A change of this file is a change of behaviour: make it on purpose, and review it.
func TestCorpus(t *testing.T) {
	needs.Real(t)
	lines := judgeCorpus(t, corpus.Scenarios(), readByAShell)
	if *update {
		if err := os.WriteFile(golden, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	compareWithGolden(t, lines)
	want := readGolden(t)
	for _, line := range lines {
		delete(want, goldenKey(line))
	}
	for key := range want {
		t.Errorf("%s has no %s", golden, key)
	}
}

// readByAShell: a command, and what takes it back, are such as a shell reads.
func readByAShell(t *testing.T, cause string, s remedy.Step) {
	t.Helper()
	for _, line := range []string{s.Command, s.Undo} {
		if out, err := exec.Command("/bin/sh", "-n", "-c", line).CombinedOutput(); err != nil {
			t.Errorf("%s: step %s: no shell reads %q: %s", cause, s.ID, line, out)
		}
	}
}
