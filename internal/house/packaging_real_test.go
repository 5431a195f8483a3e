package house

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"slowpath/internal/house/needs"
)

// TestUnitIsValid: systemd finds no fault in the unit, but that its program is not installed here.
func TestUnitIsValid(t *testing.T) {
	needs.Real(t, needs.Command("systemd-analyze", "systemd"))
	text := read(t, "packaging/systemd/slowpath.service")
	program, err := exec.LookPath("true")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "slowpath.service")
	text = strings.ReplaceAll(text, "/usr/bin/slowpath", program)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("systemd-analyze", "verify", "--man=no", path).CombinedOutput()
	if err != nil || len(bytes.TrimSpace(out)) > 0 {
		t.Errorf("%v: %s", err, out)
	}
}
