package fleet

import (
	"errors"
	"os"
	"testing"

	"slowpath/internal/lab/servers"
)

// get takes a server from the user's cache, downloading it the first time.
func get(t *testing.T, name servers.Name) servers.Binary {
	t.Helper()
	c, err := servers.OpenCache(os.Getenv("SLOWPATH_TEST_SERVERS"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := c.Get(t.Context(), name, t.Output())
	if errors.Is(err, servers.ErrRegistry) || errors.Is(err, servers.ErrTool) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
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
