package incident

import (
	"strings"
	"testing"
)

// TestClientIncidents: each is named after its cause, with what it varies behind it.
func TestClientIncidents(t *testing.T) {
	for _, in := range clientIncidents {
		if in.ID != in.Cause && !strings.HasPrefix(in.ID, in.Cause+"-") {
			t.Errorf("incident %q is of %q", in.ID, in.Cause)
		}
	}
}
