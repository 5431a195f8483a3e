package fleet

import (
	"context"
	"log"
	"os"
	"path/filepath"
	"testing"

	"slowpath/internal/lab/codis"
)

// helperEnv makes the test binary a lab that is killed (see TestSweepAfterTheLabWasKilled).
const helperEnv = "SLOWPATH_FLEET_HELPER"

func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == "codis-proxy" { // as StartCodis executes it
		if err := codis.Listen(context.Background(), os.Args[3], os.Args[4:]); err != nil {
			log.Fatal(err)
		}
		return
	}
	if dir := os.Getenv(helperEnv); dir != "" {
		helper(dir)
		return
	}
	os.Exit(m.Run())
}

// newFleet has a registry of its own. The test fails if anything is left in it.
func newFleet(t *testing.T) *Fleet {
	t.Helper()
	f := openFleet(t, t.TempDir())
	t.Cleanup(func() { checkNothingLeft(t, f.Registry) })
	return f
}

func openFleet(t *testing.T, dir string) *Fleet {
	t.Helper()
	r, err := OpenRegistry(dir)
	if err != nil {
		t.Fatal(err)
	}
	f, err := New(r)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func checkNothingLeft(t *testing.T, r *Registry) {
	t.Helper()
	entries, err := r.Entries()
	if err != nil || len(entries) != 0 {
		t.Errorf("left in the registry: %v, %v", entries, err)
	}
	if files, _ := filepath.Glob(filepath.Join(r.dir, ".new-*")); len(files) != 0 {
		t.Errorf("left in the registry: %v", files)
	}
}
