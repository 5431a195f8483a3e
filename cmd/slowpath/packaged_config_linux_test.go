//go:build linux

package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPackagedConfig: the configuration file of the packages, and the example of the operations guide, are ones that
// serve takes.
func TestPackagedConfig(t *testing.T) {
	dir := t.TempDir()
	packaged, err := os.ReadFile("../../packaging/slowpath.yaml")
	if err != nil {
		t.Fatal(err)
	}
	guide, err := os.ReadFile("../../site/docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, found := strings.Cut(string(guide), "```yaml\n")
	example, _, ended := strings.Cut(example, "```")
	if !found || !ended {
		t.Fatal("the operations guide has no example of a configuration")
	}
	webhook := filepath.Join(dir, "webhook")
	if err := os.WriteFile(webhook, []byte("https://example.org/hook\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	example = strings.ReplaceAll(example, "/etc/slowpath/webhook", webhook)
	uncommented := strings.NewReplacer("# targets:", "targets:", "#   - 127", "  - 127").Replace(string(packaged))
	if uncommented == string(packaged) {
		t.Error("packaging/slowpath.yaml shows no targets")
	}
	for name, text := range map[string]string{
		"packaged": string(packaged), "with its targets": uncommented, "guide": example,
	} {
		path := filepath.Join(dir, "slowpath.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		root := appOn(&out, io.Discard).root()
		root.SetArgs([]string{"serve", "--check-config", "--config", path})
		if err := root.Execute(); err != nil || !strings.Contains(out.String(), "good") {
			t.Errorf("%s: %v %s", name, err, out.String())
		}
	}
}
