package main

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"

	"slowpath/internal/cli"
	"slowpath/internal/recording"
)

// fullDisk takes nothing.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// TestExitOnFullDisk: where the verdict cannot be written, it is not the command line that is wrong.
func TestExitOnFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "empty.slowpath")
	rec, err := recording.Create(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	a := appOn(fullDisk{}, &stderr)
	if code := a.execute(t.Context(), []string{"report", path}); code != cli.ExitInternal {
		t.Errorf("exit code %d, want %d: %s", code, cli.ExitInternal, stderr.String())
	}
}
