package verdict

import (
	"testing"

	"slowpath/internal/recording"
)

// TestRights: each user is given all that it lacks by one command; other advice stays as it is.
func TestRights(t *testing.T) {
	spots := withRights([]recording.BlindSpot{
		{Enable: "ACL SETUSER ops +info +client|list"},
		{Enable: "run as root"},
		{Enable: "ACL SETUSER ops +client|list +get ~slowpath:*"},
		{Enable: "ACL SETUSER default +info"},
		{Enable: "ACL SETUSER "},
		{},
	})
	want := []string{
		"ACL SETUSER ops +info +client|list +get ~slowpath:*",
		"run as root",
		"ACL SETUSER ops +info +client|list +get ~slowpath:*",
		"ACL SETUSER default +info",
		"ACL SETUSER ",
		"",
	}
	for i, s := range spots {
		if s.Enable != want[i] {
			t.Errorf("%d: %q, want %q", i, s.Enable, want[i])
		}
	}
}
