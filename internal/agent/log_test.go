package agent

import (
	"encoding/json"
	"log"
	"strings"
	"testing"
)

// TestLogOfLibraries: what net/http and others log is a line of the agent's log, and cannot drive a terminal.
func TestLogOfLibraries(t *testing.T) {
	var out strings.Builder
	log.New(NewLog(&out, true), "", 0).Printf("http: superfluous \x1b[31m reply\nfrom %s", "10.0.0.1")
	var e entry
	if err := json.Unmarshal([]byte(out.String()), &e); err != nil || e.Level != "warning" ||
		strings.Count(out.String(), "\n") != 1 || strings.ContainsAny(e.Message, "\x1b\n") {
		t.Errorf("%q: %+v, %v", out.String(), e, err)
	}
}
