package toolchain

import (
	"context"
	"errors"
	"strings"
	"testing"

	"slowpath/internal/house/needs"
)

func TestPythonWithoutTheLibrary(t *testing.T) {
	needs.Real(t)
	// a shell has no such module either
	_, err := findPython(t.Context(), "redis.asyncio", "apt-get install python3-redis", "no-such-python", "sh")
	if !errors.Is(err, ErrTool) || !strings.Contains(err.Error(), "apt-get install python3-redis") {
		t.Error(err)
	}
}

// TestRegistryErrors: a download that fails is not an error of the program.
func TestRegistryErrors(t *testing.T) {
	needs.Real(t)
	if err := download(t.Context(), t.TempDir(), nil, "sh", "-c", "echo no route; exit 1"); !errors.Is(err,
		ErrRegistry) || !strings.Contains(err.Error(), "no route") {
		t.Error(err)
	}
	if err := run(t.Context(), t.TempDir(), nil, "sh", "-c", "exit 1"); err == nil || errors.Is(err, ErrRegistry) {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := download(ended, t.TempDir(), nil, "sh", "-c", "sleep 100"); !errors.Is(err, context.Canceled) ||
		errors.Is(err, ErrRegistry) {
		t.Error(err)
	}
}
