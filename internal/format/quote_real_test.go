package format

import (
	"os/exec"
	"testing"

	"slowpath/internal/house/needs"
)

// TestShellReads asks a shell what it makes of a quoted name.
func TestShellReads(t *testing.T) {
	needs.Real(t)
	for name, text := range quoted {
		out, err := exec.Command("/bin/sh", "-c", "printf %s "+text).Output()
		if err != nil || string(out) != name {
			t.Errorf("a shell takes %s as %q, %v", text, out, err)
		}
	}
}
