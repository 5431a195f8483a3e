package symbol

import (
	"os/exec"
	"strings"
	"testing"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"

	"slowpath/internal/source/hostfs"
)

// TestLibraryAndVDSO: the C library is stripped, and exports its functions; each has a way to its caller.
func TestLibraryAndVDSO(t *testing.T) {
	needs.Real(t)
	c := exec.Command("sleep", "60")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Process.Kill(); _ = c.Wait() }()
	p, err := OpenProcess(hostfs.Root{}, c.Process.Pid, Files{})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	await.Until(t, "the loader has mapped the C library", func() bool {
		if err := p.Refresh(); err != nil {
			t.Fatal(err)
		}
		for _, m := range p.maps {
			f := p.open(&m)
			if f == nil || len(f.table) == 0 || m.Path != "[vdso]" && !strings.Contains(m.Path, "libc.so") {
				continue
			}
			for _, fn := range f.table {
				if f.rule(fn.start, true) != nil {
					seen[f.Name[:4]] = true
				}
			}
			if m.Path != "[vdso]" && f.BuildID == "" {
				t.Errorf("%s has no build id", m.Path)
			}
		}
		return seen["libc"]
	})
	if !seen["libc"] || !seen["[vds"] {
		t.Errorf("%v of %+v", seen, p.maps)
	}
}
