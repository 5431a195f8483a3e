package toolchain

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestPythonWithoutTheLibrary(t *testing.T) {
	// a shell has no such module either
	_, err := findPython(t.Context(), "redis.asyncio", "apt-get install python3-redis", "no-such-python", "sh")
	if !errors.Is(err, ErrTool) || !strings.Contains(err.Error(), "apt-get install python3-redis") {
		t.Error(err)
	}
}

// TestRegistryErrors: a download that fails is not an error of the program.
func TestRegistryErrors(t *testing.T) {
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

func TestSourceHash(t *testing.T) {
	a := Source{"main.go": []byte("package main"), "go.mod": []byte("module lab")}
	if a.hash() != (Source{"go.mod": []byte("module lab"), "main.go": []byte("package main")}).hash() {
		t.Error("the order of the files matters")
	}
	for _, b := range []Source{
		{"main.go": []byte("package main")},
		{
			"main.go": []byte("package mai"),
			"go.mod":  []byte("module lab"),
		},
		{"main2.go": []byte("package main"), "go.mod": []byte("module lab")},
	} {
		if a.hash() == b.hash() {
			t.Errorf("%v has the hash of another source", b)
		}
	}
}
