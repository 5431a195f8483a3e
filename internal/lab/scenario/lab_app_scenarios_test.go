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
		in := a.Scenario()
		if seen[in.ID] || in.Make == nil || in.Title == "" || in.Cause == "" {
			t.Errorf("%+v", in)
		}
		seen[in.ID] = true
		if found, ok := Find(in.ID); !ok || found.Cause != in.Cause {
			t.Errorf("%s is not found", in.ID)
		}
		if _, ok := Find(in.Cause); a.Fault != "" && !ok {
			t.Errorf("%s: no scenario %s", in.ID, in.Cause)
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
	in, _ := Find("app-telemetry")
	scene, err := in.Make(t.Context(), l)
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
