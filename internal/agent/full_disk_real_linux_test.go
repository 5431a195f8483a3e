package agent

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"slowpath/internal/agent/incidents"
	"slowpath/internal/agent/judge"
	"slowpath/internal/house/needs"
)

// TestAgentOnAFullDisk: health says that incidents cannot be kept, and no more when there is room again. An incident
// that ends meanwhile is over, also after a restart.
func TestAgentOnAFullDisk(t *testing.T) {
	needs.Real(t, needs.Root)
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	a := openTestAgent(t, filepath.Join(dir, "data"), func(judge.Options) {})
	end, err := a.store.Begin("slow calls", "127.0.0.1:6379", time.Now().Add(-time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	filler := filepath.Join(dir, "filler")
	_ = os.WriteFile(filler, bytes.Repeat([]byte("x"), 1<<20), 0o600) // all that there is room for
	r := a.episodes.keep.(*recorder)
	if _, err := r.begin(Firing{Text: "slow calls"}, nil, time.Now().Unix()); err == nil {
		t.Fatal("the disk is not full")
	}
	if a.checkFiles(); !said(a, "cannot be kept") {
		t.Errorf("health says %q", a.Health().Problems)
	}
	r.judge(end.ID, nil, span{end.Start.Unix(), end.Start.Unix() + 1}, end.Start.Unix()+1, true, func(found) {})
	(<-r.jobs)()
	is := func(a *Agent) incidents.Incident {
		in, _ := a.store.Get(end.ID)
		return in
	}
	if is(a).State != incidents.StateFailed || !a.store.Unwritten() || !said(a, "cannot be kept") {
		t.Errorf("an incident that ends now: %+v; health says %q", is(a), a.Health().Problems)
	}
	if a.checkFiles(); !a.store.Unwritten() || !said(a, "cannot be kept") {
		t.Errorf("tried again: %+v; health says %q", is(a), a.Health().Problems)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if a.checkFiles(); a.store.Unwritten() || said(a, "incident") {
		t.Errorf("there is room again, and health says %q", a.Health().Problems)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	a = openTestAgent(t, filepath.Join(dir, "data"), func(judge.Options) {})
	if is(a).State != incidents.StateFailed || is(a).CutOff {
		t.Errorf("after a restart: %+v", is(a))
	}
}
