package tap

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestReasons: what is said of a kernel without bpf_loop is not what is said of one without fentry.
func TestReasons(t *testing.T) {
	for _, c := range []struct {
		err            error
		reason, remedy string
	}{
		{ErrNoLoop, "it has no bpf_loop (Linux 5.17)", "linux-generic-hwe-22.04"},
		{fmt.Errorf("%w: tcp_recvmsg", ErrNoHook), "tcp_recvmsg", "fentry"},
		{fmt.Errorf("%w: denied", ErrPrivilege), ErrPrivilege.Error(), "as root"},
		{errors.New("other\nmore"), "other", "report it"},
	} {
		err := fmt.Errorf("loading: %w", c.err)
		if got := Reason(err); !strings.Contains(got, c.reason) || strings.Contains(got, "\n") {
			t.Errorf("%v: reason %q", err, got)
		}
		if got := Remedy(err); !strings.Contains(got, c.remedy) {
			t.Errorf("%v: remedy %q", err, got)
		}
	}
}
