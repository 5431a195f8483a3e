//go:build linux

package tap

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/cilium/ebpf"

	"slowpath/internal/house/needs"
	"slowpath/internal/source/host"
)

// TestCollectionWatch hooks the runtime of Debian's Python.
func TestCollectionWatch(t *testing.T) {
	needs.Real(t, needs.BPF, needs.Python)
	const python = "/usr/bin/python3" // others in PATH may be built without probes
	c := exec.Command(python, "-c", "import sys; print('ready', flush=True); sys.stdin.read()")
	in, _ := c.StdinPipe()
	out, _ := c.StdoutPipe()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { in.Close(); _ = c.Wait() }()
	if _, err := out.Read(make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	l, err := loadWith(constants{})
	attached(t, err)
	w := newCollectionWatch(l.coll.Programs, host.Root{})
	defer func() {
		if err := errors.Join(w.Close(), l.Close()); err != nil {
			t.Error(err)
		}
	}()
	runtime, err := w.hook(uint32(c.Process.Pid))
	if errors.Is(err, os.ErrPermission) || errors.Is(err, ebpf.ErrNotSupported) {
		t.Skip("needs uprobes: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if runtime == "" {
		t.Skip("this Python was built without probes")
	}
	if runtime != "python" || w.runtime[uint32(c.Process.Pid)] != "python" {
		t.Errorf("runtime %q", runtime)
	}
}
