package scenario

import (
	"bytes"
	"errors"
	"regexp"
	"testing"

	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/servers"
)

// TestMakeAndClose makes scenarios with few calls: their clients must report successful calls, and nothing may be left
// in the registry.
func TestMakeAndClose(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	for id, program := range map[string]string{
		"handshake-extra-rtts": "go-redis-v9",
		"dns-slow":             "redigo",
		"client-gc-pause":      "pyasync",
	} {
		t.Run(id, func(t *testing.T) {
			t.Setenv("XDG_STATE_HOME", t.TempDir())
			sc, ok := Find(id)
			if !ok {
				t.Fatal("no such scenario")
			}
			var log bytes.Buffer
			l, err := New(servers.Redis7015, &log)
			if err != nil {
				t.Fatal(err)
			}
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
			case scene.Target == "":
				t.Error("no target")
			}
			if !regexp.MustCompile(`(?m)^client ` + program + `: [1-9]\d* calls in .*, 0 errors,`).Match(log.Bytes()) {
				t.Errorf("log: %s", &log)
			}
		})
	}
}
