package incident

import "testing"

// TestClientIncidents: each is the one incident of its cause.
func TestClientIncidents(t *testing.T) {
	for _, in := range clientIncidents {
		if in.ID != in.Cause {
			t.Errorf("incident %q is of %q", in.ID, in.Cause)
		}
	}
}
