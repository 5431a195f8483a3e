package ring_test

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"slowpath/internal/agent/ring"
	"slowpath/internal/house/needs"
)

// TestRingOnAFullDisk: it is said once, what is seen meanwhile stays in memory and can be saved, and when there is room
// it is written.
func TestRingOnAFullDisk(t *testing.T) {
	needs.Real(t, needs.Root)
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	r, c, log := opened(t, filepath.Join(dir, "ring"), ring.Options{})
	put := func(from, to int64) (err error) {
		for i := from; i < to; i++ {
			c.ns.Store(startNs + i*100e6)
			r.Call(call(c.Now()))
			err = r.Flush()
		}
		return err
	}
	if err := put(0, 10); err != nil {
		t.Fatal(err)
	}
	filler := filepath.Join(dir, "filler")
	_ = os.WriteFile(filler, bytes.Repeat([]byte("x"), 1<<20), 0o600) // all that there is room for
	for i := int64(10); i < 50; i++ {
		_ = put(i, i+1) // there may be room in the last page of a file
	}
	if r.Status().Trouble == "" || log.count("cannot be written") != 1 || log.count("make room") != 1 {
		t.Fatalf("status %+v, said %q", r.Status(), log.all)
	}
	if rec := saved(t, r, 0, 5); len(rec.Calls) != 50 {
		t.Errorf("%d of 50 calls while the disk is full", len(rec.Calls))
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if err := put(50, 60); err != nil {
		t.Fatal(err)
	}
	if s := r.Status(); s.Trouble != "" || s.Lost != 0 || log.count("is written again; 0 rows were lost") != 1 {
		t.Errorf("status %+v, said %q", s, log.all)
	}
	if rec := saved(t, r, 0, 6); len(rec.Calls) != 60 {
		t.Errorf("%d of 60 calls afterwards", len(rec.Calls))
	}
}
