package agent

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"slowpath/internal/agent/judge"
	"slowpath/internal/house/needs"
)

// TestAgentOnAFullDisk: health says that incidents cannot be kept, and no more when there is room again.
func TestAgentOnAFullDisk(t *testing.T) {
	needs.Real(t, needs.Root)
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	a := openTestAgent(t, filepath.Join(dir, "data"), func(judge.Options) {})
	filler := filepath.Join(dir, "filler")
	_ = os.WriteFile(filler, bytes.Repeat([]byte("x"), 1<<20), 0o600) // all that there is room for
	r := a.episodes.keep.(*recorder)
	if _, err := r.begin(Firing{Text: "slow calls"}, nil, time.Now().Unix()); err == nil {
		t.Fatal("the disk is not full")
	}
	if a.checkFiles(); !said(a, "cannot be kept") {
		t.Errorf("health says %q", a.Health().Problems)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if a.checkFiles(); len(a.Health().Problems) != 0 {
		t.Errorf("there is room again, and health says %q", a.Health().Problems)
	}
}
