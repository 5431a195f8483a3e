package fleet

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"slowpath/internal/lab/codis"
	"slowpath/internal/lab/servers"
)

// helperEnv makes the test binary a lab that is killed (see TestSweepAfterTheLabWasKilled).
const helperEnv = "SLOWPATH_FLEET_HELPER"

var skipped struct {
	sync.Mutex
	why []string
}

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
	code := m.Run()
	for _, why := range skipped.why {
		fmt.Println("skipped:", why)
	}
	os.Exit(code)
}

func skip(t *testing.T, why string) {
	t.Helper()
	skipped.Lock()
	skipped.why = append(skipped.why, t.Name()+": "+why)
	skipped.Unlock()
	t.Skip(why)
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		skip(t, "needs root")
	}
}

// get takes a server from the user's cache, downloading it the first time.
func get(t *testing.T, name servers.Name) servers.Binary {
	t.Helper()
	c, err := servers.OpenCache(os.Getenv("SLOWPATH_TEST_SERVERS"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := c.Get(t.Context(), name, t.Output())
	if errors.Is(err, servers.ErrRegistry) || errors.Is(err, servers.ErrTool) {
		skip(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
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

func checkGone(t *testing.T, i Info) {
	t.Helper()
	if _, err := os.Stat(i.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory %s is left: %v", i.Dir, err)
	}
	if st, err := RealHost().stat(i.PID); err == nil && st.state != 'Z' {
		t.Errorf("process %d is left in state %c", i.PID, st.state)
	}
}
