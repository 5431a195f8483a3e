package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"slowpath/internal/cli"
	"slowpath/internal/diagnose/corpus"
)

// patience is far more than a verdict of a small recording takes.
const patience = time.Minute

// judge runs a command on a recording in this process, where a panic fails the test.
func judge(t *testing.T, command, path string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	a := appOn(&out, &errs)
	ended := make(chan int, 1)
	go func() { ended <- a.execute(t.Context(), []string{command, path}) }()
	select {
	case code := <-ended:
		return code, out.String(), errs.String()
	case <-time.After(patience):
		t.Fatalf("%s %s has not ended after %v", command, path, patience)
	}
	return 0, "", ""
}

// checkJudged: a verdict with its exit code, or one line that says why there is none.
func checkJudged(t *testing.T, how, path string) (judged int) {
	t.Helper()
	for command, codes := range map[string][]int{"report": {cli.ExitClean}, "doctor": {
		cli.ExitClean,
		cli.ExitFindings,
	}} {
		code, stdout, stderr := judge(t, command, path)
		switch {
		case code == cli.ExitUsage:
			if stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "slowpath: "+path) {
				t.Errorf("%s of %s: %q, %q", command, how, stdout, stderr)
			}
		case !slices.Contains(codes, code) || stdout == "" || stderr != "":
			t.Errorf("%s of %s: exit code %d, %q, %q", command, how, code, stdout, stderr)
		default:
			judged++
		}
	}
	return judged
}

// TestDamagedRecordings: a real recording that was cut, and one in which bytes were changed, at random places.
func TestDamagedRecordings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "whole.slowpath")
	if err := corpus.Unpack("healthy-idle", path); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := judge(t, "report", path); code != cli.ExitClean {
		t.Fatalf("exit code %d, %s", code, stderr)
	}
	const rounds = 50
	random := rand.New(rand.NewPCG(15, 3))
	judged := map[string]int{}
	for i := range rounds {
		cut := random.IntN(len(whole))
		body, kind := whole[:cut], "cut"
		how := fmt.Sprintf("the first %d of %d bytes", cut, len(whole))
		if i%2 == 1 {
			body, kind, how = slices.Clone(whole), "changed", fmt.Sprintf("round %d", i)
			for range 1 + random.IntN(40) {
				at := random.IntN(len(body))
				body[at] ^= byte(1 << random.IntN(8))
				how += fmt.Sprintf(" %d", at)
			}
		}
		damaged := filepath.Join(t.TempDir(), "damaged.slowpath")
		if err := os.WriteFile(damaged, body, 0o600); err != nil {
			t.Fatal(err)
		}
		judged[kind] += checkJudged(t, how, damaged)
	}
	if t.Logf("judged: %v of %d", judged, 2*rounds); judged["cut"] < rounds/2 || judged["changed"] < rounds/2 {
		t.Errorf("few are judged: %v", judged)
	}
}
