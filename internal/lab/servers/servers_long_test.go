package servers

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slowpath/internal/house/needs"
)

func TestGetEveryServer(t *testing.T) {
	needs.Long(t)
	c := openDefault(t)
	for _, name := range Known() {
		t.Run(string(name), func(t *testing.T) {
			t.Parallel()
			b, err := c.Get(t.Context(), name, t.Output())
			if errors.Is(err, ErrRegistry) || errors.Is(err, ErrTool) {
				t.Skipf("skipped: %v", err)
			}
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(b.Path, string(filepath.Separator)+".tmp-") {
				t.Errorf("Path %s is the temporary directory", b.Path)
			}
			if base := filepath.Base(b.Path); base != "redis-server" && base != "valkey-server" {
				t.Errorf("the process would be called %s", base)
			}
			out, err := b.Command("--version").Output()
			if err != nil || !strings.Contains(string(out), "v="+b.Version+" ") {
				t.Errorf("--version: %q, %v", out, err)
			}
			if again, err := c.Get(t.Context(), name, nil); err != nil || again.Path != b.Path {
				t.Errorf("the second Get: %v, %v", again, err)
			}
			if !slices.ContainsFunc(c.Installed(t.Context()), func(i Binary) bool { return i.Name == name }) {
				t.Error("not among the installed")
			}
		})
	}
}
