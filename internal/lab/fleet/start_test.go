package fleet

import (
	"context"
	"testing"

	"slowpath/internal/lab/servers"
)

// start fails the test on error and stops the server at its end, checking that nothing is left.
func start(t *testing.T, bin servers.Binary, spec Spec) *Instance {
	t.Helper()
	i, err := newFleet(t).Start(t.Context(), bin, spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		checkGone(t, i.Info)
	})
	return i
}

func TestSpecCheck(t *testing.T) {
	bin := servers.Binary{}
	for name, s := range map[string]Spec{
		"bind": {Bind: "example.org"}, "port": {Port: 70000}, "bus port": {Port: 60000, cluster: true},
		"nice":  {Nice: 20},
		"netns": {NetNS: "-all"}, "line break": {Config: []string{"a\nb"}}, "password": {Password: "a\r"},
		"procs": {CgroupProcs: []string{"/etc/passwd"}},
	} {
		if err := s.check(bin); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
