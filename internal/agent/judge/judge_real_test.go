package judge_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"slowpath/internal/agent/folder/foldertest"
	"slowpath/internal/agent/judge"
	"slowpath/internal/diagnose/corpus"
	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
)

// dir has the program that built builds.
var dir string

func TestMain(m *testing.M) {
	code := m.Run()
	if dir != "" {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

var built = sync.OnceValues(func() (path string, err error) {
	if dir, err = os.MkdirTemp("", "judge"); err != nil {
		return "", err
	}
	path = filepath.Join(dir, "slowpath")
	build := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", path,
		"slowpath/cmd/slowpath")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building slowpath: %w\n%s", err, out)
	}
	return path, nil
})

// slowpath is the real program, built once.
func slowpath(t testing.TB) string {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func recordingOf(t testing.TB, scenario string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), scenario+".slowpath")
	if err := corpus.Unpack(scenario, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// of are the options to judge a recording beside which its page is to be.
func of(t testing.TB, program, path string) judge.Options {
	t.Helper()
	return judge.Options{
		Executable: program, Folder: foldertest.Open(t, filepath.Dir(path)), Recording: filepath.Base(path),
		HTML: "report.html",
	}
}

func TestVerdict(t *testing.T) {
	needs.Real(t, needs.Command("go", "golang"))
	o := of(t, slowpath(t), recordingOf(t, "server-cfs-throttled"))
	for range 2 { // the second one replaces the page
		text, err := judge.Verdict(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		var d struct {
			Schema, Verdict string
			Findings        []struct{ Cause string }
		}
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatal(err)
		}
		if d.Verdict != "findings" || len(d.Findings) == 0 || d.Findings[0].Cause != "server-cfs-throttled" {
			t.Errorf("judged as %s %v", d.Verdict, d.Findings)
		}
	}
	html, err := os.ReadFile(o.Folder.Path(o.HTML))
	if err != nil || !strings.Contains(string(html), "server-cfs-throttled") {
		t.Errorf("the page: %v, %d bytes", err, len(html))
	}
	entries, err := os.ReadDir(o.Folder.Path())
	if err != nil || len(entries) != 2 {
		t.Errorf("more than the recording and the page is left: %v %v", entries, err)
	}
}

func TestHealthyIsNoError(t *testing.T) {
	needs.Real(t, needs.Command("go", "golang"))
	text, err := judge.Verdict(t.Context(), of(t, slowpath(t), recordingOf(t, "healthy-idle")))
	if err != nil || !strings.Contains(string(text), `"verdict": "healthy"`) {
		t.Errorf("%v %.200s", err, text)
	}
}

func TestCompare(t *testing.T) {
	needs.Real(t, needs.Command("go", "golang"))
	text, err := judge.Options{Executable: slowpath(t)}.Compare(t.Context(), recordingOf(t, "healthy-mixed"),
		recordingOf(t, "server-cfs-throttled"))
	if err != nil || !strings.Contains(string(text), `"schema": "slowpath.compare/v1"`) {
		t.Errorf("%v %.200s", err, text)
	}
}

// TestBadJudgements: each ends with one sentence, and leaves no page.
func TestBadJudgements(t *testing.T) {
	needs.Real(t, needs.Command("go", "golang"))
	dir := t.TempDir()
	noRecording := filepath.Join(dir, "-text")
	if err := os.WriteFile(noRecording, []byte("SQLite? no\x1b[31m"), 0o600); err != nil {
		t.Fatal(err)
	}
	noMemory := filepath.Join(dir, "killed") // as the kernel kills a program that it cannot load
	if err := os.WriteFile(noMemory, []byte("#!/bin/sh\nkill -SEGV $$\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	healthy, throttled := recordingOf(t, "healthy-mixed"), recordingOf(t, "server-cfs-throttled")
	for name, c := range map[string]struct {
		program, recording string
		bounds             judge.Options
		want               string
	}{
		"no memory to begin": {noMemory, healthy, judge.Options{}, "memory"},
		"no recording":       {slowpath(t), noRecording, judge.Options{}, "recording"},
		"no file":            {slowpath(t), filepath.Join(dir, "gone.slowpath"), judge.Options{}, "gone.slowpath"},
		"no program":         {filepath.Join(dir, "none"), healthy, judge.Options{}, "starting slowpath"},
		"another program":    {"/bin/true", healthy, judge.Options{}, "printed no slowpath.diagnosis/v1"},
		"too much output":    {slowpath(t), healthy, judge.Options{MaxOutput: 100}, "too large"},
		"too little time":    {slowpath(t), healthy, judge.Options{Timeout: time.Millisecond}, "longer than 1ms"},
		"too little memory":  {slowpath(t), throttled, judge.Options{MaxMemory: 8 << 20}, "memory"},
	} {
		t.Run(name, func(t *testing.T) {
			o := of(t, c.program, c.recording)
			o.MaxOutput, o.Timeout, o.MaxMemory = c.bounds.MaxOutput, c.bounds.Timeout, c.bounds.MaxMemory
			_, err := judge.Verdict(t.Context(), o)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.ContainsAny(err.Error(), "\x1b\n") {
				t.Errorf("got %v, want a sentence with %q", err, c.want)
			}
			if left, err := filepath.Glob(o.Folder.Path(o.HTML + "*")); err != nil || len(left) > 0 {
				t.Errorf("left %v, %v", left, err)
			}
		})
	}
}

// TestEndOfContext: the process ends with its context.
func TestEndOfContext(t *testing.T) {
	needs.Real(t)
	running := filepath.Join(t.TempDir(), "waits")
	script := filepath.Join(t.TempDir(), "slowpath")
	// a program that never ends, and says when it runs
	text := "#!/bin/sh\necho $$ > " + running + "\nexec sleep 1000\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := judge.Verdict(ctx, of(t, script, filepath.Join(t.TempDir(), "x")))
		ended <- err
	}()
	var pid, environment []byte
	proc := ""
	await.Until(t, "the program runs, as sleep", func() bool {
		pid, _ = os.ReadFile(running)
		proc = "/proc/" + strings.TrimSpace(string(pid))
		program, _ := os.ReadFile(proc + "/comm")
		environment, _ = os.ReadFile(proc + "/environ") // empty in the middle of exec
		return string(program) == "sleep\n" && len(environment) > 0
	})
	stat, _ := os.ReadFile(proc + "/stat")
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(proc); err == nil {
		t.Errorf("process %s is still there", pid)
	}
	const niceField = 16 // after the name in parentheses, from 0 (proc(5): field 19)
	_, after, _ := strings.Cut(string(stat), ") ")
	if fields := strings.Fields(after); len(fields) < niceField+1 || fields[niceField] != "5" {
		t.Errorf("its nice value in %q is not 5", stat)
	}
	for _, v := range strings.Split(strings.TrimRight(string(environment), "\x00"), "\x00") {
		name, _, _ := strings.Cut(v, "=")
		if !slices.Contains([]string{"GOMAXPROCS", "GOMEMLIMIT", "TZ", "LANG", "LC_ALL", "TMPDIR", "PWD"}, name) {
			t.Errorf("it was told %s", name)
		}
	}
}

func BenchmarkVerdict(b *testing.B) {
	for _, scenario := range []string{"server-cfs-throttled", "healthy-mixed", "slow-command-keys"} {
		path := filepath.Join(b.TempDir(), scenario+".slowpath")
		if err := corpus.Unpack(scenario, path); err != nil {
			continue
		}
		b.Run(scenario, func(b *testing.B) {
			for b.Loop() {
				_, err := judge.Verdict(b.Context(), of(b, slowpath(b), path))
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
