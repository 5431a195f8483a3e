package scenario

import (
	"errors"
	"strings"
	"testing"

	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/servers"
)

// TestAppOfALab runs the application that is built in no time, and checks what is left behind.
func TestAppOfALab(t *testing.T) {
	needs.Real(t, needs.RedisServer, needs.Python)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	var log strings.Builder
	l, err := New(servers.Redis7015, &log)
	if err != nil {
		t.Fatal(err)
	}
	sc, _ := Find("app-telemetry")
	scene, err := sc.Make(t.Context(), l)
	if closeErr := l.Close(t.Context()); closeErr != nil {
		t.Error(closeErr)
	}
	if left, err := l.Registry.Entries(); err != nil || len(left) > 0 {
		t.Errorf("left in the registry: %v, %v", left, err)
	}
	switch {
	case errors.Is(err, fault.ErrCannot), errors.Is(err, servers.ErrRegistry), errors.Is(err, servers.ErrTool):
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	case scene.Target == "" || !strings.Contains(log.String(), "application telemetry: report: "):
		t.Errorf("%+v, log: %s", scene, &log)
	}
}
