package scenario

import (
	"errors"
	"strings"
	"testing"

	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/servers"
)

func TestAppScenarios(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range AppScenarios() {
		sc := a.Scenario()
		if seen[sc.ID] || sc.Make == nil || sc.Title == "" || sc.Cause == "" {
			t.Errorf("%+v", sc)
		}
		seen[sc.ID] = true
		if found, ok := Find(sc.ID); !ok || found.Cause != sc.Cause {
			t.Errorf("%s is not found", sc.ID)
		}
		if _, ok := Find(sc.Cause); a.Fault != "" && !ok {
			t.Errorf("%s: no scenario %s", sc.ID, sc.Cause)
		}
	}
	if _, ok := Find("app-nosuch"); ok || !seen["app-celery"] || !seen["app-django-twemproxy"] ||
		!seen["app-rq-packet-loss-rto"] {
		t.Error("not the scenarios of docs/apps.md")
	}
}

// TestAppOfALab runs the application that is built in no time, and checks what is left behind.
func TestAppOfALab(t *testing.T) {
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
