//go:build linux

package bench

import (
	"strings"
	"testing"
)

// TestFixes: a failure whose remedy is known says it.
func TestFixes(t *testing.T) {
	r := &Result{Errors: map[string]int64{"connecting: no free local port": 3, "WRONGTYPE": 1}}
	if got := fixes(r); len(got) != 1 || !strings.Contains(got[0], "ip_local_port_range") {
		t.Errorf("%q", got)
	}
}
