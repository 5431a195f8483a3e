package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestStatusElsewhere: a stderr that is no terminal gets few lines, and none of what is done soon.
func TestStatusElsewhere(t *testing.T) {
	var out bytes.Buffer
	a := &Program{Stderr: &out}
	a.Progress("reading x")
	a.ProgressDone()
	if out.Len() > 0 {
		t.Errorf("%q", out.String())
	}
	for second := range 3600 { // an hour
		a.status.began, a.status.shown = time.Now().Add(-time.Duration(second)*time.Second), time.Time{}
		a.Progress("watching, second %d", second)
	}
	a.ProgressDone()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	want := []int{10, 20, 40, 80, 160, 320, 640, 1280, 2560}
	if len(lines) != len(want) {
		t.Fatalf("%d lines: %q", len(lines), lines)
	}
	for i, line := range lines {
		var second int
		_, err := fmt.Sscanf(line, "watching, second %d", &second)
		if err != nil || second < want[i] || second > want[i]*6/5 { // the clock goes on meanwhile
			t.Errorf("%q, want second %d", line, want[i])
		}
	}
}

// TestInterruptedSays: the answer to the first Ctrl-C is a line of its own, also where a prompt stands.
func TestInterruptedSays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stderr")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	a := &Program{}
	a.Stderr = besideStatus{a, file}
	a.OnInterrupt("the table follows")
	a.interrupted(a.status.ends.Load())
	a.OnInterrupt("")
	a.interrupted(a.status.ends.Load())
	fmt.Fprint(a.Stderr, "Load it? [y/N] ")
	a.InterruptEnds("nothing was read")
	a.interrupted(a.status.ends.Load())
	a.MayLeave("keys remain")
	a.endedAtOnce()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := "stopping: the table follows (Ctrl-C again ends at once)\nstopping (Ctrl-C again ends at once)\n" +
		"Load it? [y/N] \nstopped: nothing was read\nkeys remain\n"
	if string(got) != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestShortly: what nobody reads does not hold up the end.
func TestShortly(t *testing.T) {
	never := make(chan struct{})
	defer close(never)
	done := make(chan struct{})
	go func() { shortly(func() { <-never }); close(done) }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("it waits")
	}
}
