package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"slowpath/internal/agent/folder/foldertest"
	"slowpath/internal/agent/incidents"
	"slowpath/internal/agent/judge"
	"slowpath/internal/agent/ring"
	"slowpath/internal/recording"
)

// openTestAgent opens an agent whose incidents are judged by a function.
func openTestAgent(t *testing.T, dir string, judged func(judge.Options)) *Agent {
	t.Helper()
	a, err := Open(Options{
		Data: dir, Log: NewLog(t.Output(), false), Settings: Settings{Incidents: incidents.Limits{MaxAge: 1 << 62}},
		Judge: func(_ context.Context, o judge.Options) ([]byte, error) {
			judged(o)
			return []byte(`{"schema":"slowpath.diagnosis/v1","verdict":"findings","findings":[{"cause":"slow-command"}]}`),
				nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return a
}

// said reports whether health says something.
func said(a *Agent, what string) bool {
	return slices.ContainsFunc(a.Health().Problems, func(p string) bool { return strings.Contains(p, what) })
}

// TestDamagedFilesOfAnAgent: they are said in health, and what is there of an incident is judged and not replaced.
func TestDamagedFilesOfAnAgent(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	a := openTestAgent(t, dir, func(judge.Options) {})
	begun, err := a.store.Begin("slow calls", "127.0.0.1:6379", time.Now().Add(-time.Minute))
	if err == nil {
		err = a.Close()
	}
	at := filepath.Join(dir, incidentsName, begun.ID)
	damaged := []byte("\x00\x00 no file of ours")
	files := map[string]string{"recording.slowpath": "recorded", "report.html": "<p>"}
	for name, text := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(at, name), []byte(text), 0o600))
	}
	history := filepath.Join(dir, historyName)
	if err = errors.Join(err, os.WriteFile(filepath.Join(at, "incident.json"), damaged, 0o600),
		os.WriteFile(history, slices.Repeat(damaged, 1000), 0o600), os.RemoveAll(history+"-wal")); err != nil {
		t.Fatal(err)
	}
	var asked []judge.Options
	a = openTestAgent(t, dir, func(o judge.Options) { asked = append(asked, o) })
	if !said(a, "incident.json.damaged") || !said(a, "history.db.damaged") {
		t.Errorf("health says %q", a.Health().Problems)
	}
	r := a.episodes.keep.(*recorder)
	r.judgeKilled()
	select {
	case job := <-r.jobs:
		job()
	default:
		t.Error("nothing is judged")
	}
	if in, _ := a.store.Get(begun.ID); in.Cause != "slow-command" || in.State != incidents.StateJudged {
		t.Errorf("%+v", in)
	}
	if len(asked) != 1 || asked[0].HTML != "" ||
		asked[0].Folder.Path(asked[0].Recording) != filepath.Join(at, "recording.slowpath") {
		t.Errorf("judged: %+v", asked)
	}
	for name, text := range files {
		if got, err := os.ReadFile(filepath.Join(at, name)); err != nil || string(got) != text {
			t.Errorf("%s holds %q, %v", name, got, err)
		}
	}
}

// pastClock is a clock of nanoseconds since the epoch that a test sets.
type pastClock struct{ atomic.Int64 }

func (c *pastClock) Now() int64 { return c.Load() }

// TestCutOffIncident: what an agent was watching when it was killed is judged by all that it recorded of it.
func TestCutOffIncident(t *testing.T) {
	dir, lasted := filepath.Join(t.TempDir(), "data"), int64(40)
	a := openTestAgent(t, dir, func(judge.Options) {})
	start := time.Now().Unix() - lasted
	begun, err := a.store.Begin("slow calls", "127.0.0.1:6379", time.Unix(start, 0))
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(dir, ringName)
	if err := errors.Join(os.RemoveAll(kept), os.Mkdir(kept, 0o700)); err != nil {
		t.Fatal(err)
	}
	past := &pastClock{}
	past.Store(start * 1e9)
	watched, err := ring.Open(ring.Options{Folder: foldertest.Open(t, kept), Clock: past})
	if err != nil {
		t.Fatal(err)
	}
	watched.Begin()
	watched.SetMeta(recording.MetaStart, fmt.Sprint(past.Now()))
	for range lasted {
		ns := past.Add(1e9)
		watched.Call(recording.Call{
			Source: recording.SourceTap, Op: "GET", IntendedNs: ns - 2e7, StartNs: ns - 2e7, EndNs: ns,
			Node: "127.0.0.1:6379",
		})
		if err := watched.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := watched.Close(); err != nil {
		t.Fatal(err)
	}
	calls := 0
	a = openTestAgent(t, dir, func(o judge.Options) {
		rec, err := recording.Open(o.Folder.Path(o.Recording))
		if err != nil {
			t.Fatal(err)
		}
		calls = len(rec.Calls)
	})
	a.settings.Store(&Settings{Longest: DefaultLongest})
	r := a.episodes.keep.(*recorder)
	r.judgeKilled()
	select {
	case job := <-r.jobs:
		job()
	default:
		t.Fatal("nothing is judged")
	}
	in, _ := a.store.Get(begun.ID)
	if calls < int(lasted)-2 || !in.CutOff || in.State != incidents.StateJudged || in.End.Unix() < start+lasted-2 {
		t.Errorf("of %d calls %d are judged: %+v", lasted, calls, in)
	}
}

// TestDataDirectoryIsGone: health says so, and that incidents cannot be kept; it says no more when they can be.
func TestDataDirectoryIsGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	a := openTestAgent(t, dir, func(judge.Options) {})
	r := a.episodes.keep.(*recorder)
	begin := func() error {
		_, err := r.begin(Firing{Text: "slow calls"}, nil, time.Now().Unix())
		return err
	}
	if a.checkFiles(); len(a.Health().Problems) != 0 {
		t.Errorf("health says %q", a.Health().Problems)
	}
	for _, err := range []error{os.Rename(dir, dir+".moved"), os.Mkdir(dir, 0o700)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if a.checkFiles(); !said(a, "is gone") {
		t.Errorf("replaced: health says %q", a.Health().Problems)
	}
	if err := errors.Join(os.Remove(dir), os.Rename(dir+".moved", dir)); err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(dir, incidentsName)
	if err := os.RemoveAll(kept); err != nil {
		t.Fatal(err)
	}
	if err := begin(); err == nil || !said(a, "cannot be kept") {
		t.Errorf("%v; health says %q", err, a.Health().Problems)
	}
	if a.checkFiles(); !said(a, "cannot be kept") || said(a, "is gone") {
		t.Errorf("health says %q", a.Health().Problems)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if a.checkFiles(); !said(a, "is gone") {
		t.Errorf("removed: health says %q", a.Health().Problems)
	}
}

// TestKeptNames: a directory in which an agent has kept all that it may keep is one of an agent.
func TestKeptNames(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	a := openTestAgent(t, dir, func(judge.Options) {})
	sent, err := a.Sent()
	if err != nil {
		t.Fatal(err)
	}
	defer sent.Close()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !slices.Contains(Kept(), e.Name()) && !strings.HasPrefix(e.Name(), historyName) {
			t.Errorf("%s is kept, and is none of %q", e.Name(), Kept())
		}
	}
}
