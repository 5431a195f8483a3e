//go:build linux

package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// testApp is slowpath without a terminal.
func testApp() *app { return &app{stdout: io.Discard, stderr: io.Discard, env: os.Getenv} }

// allCommands are a command and all below it that are not hidden.
func allCommands(c *cobra.Command) []*cobra.Command {
	list := []*cobra.Command{c}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			list = append(list, allCommands(sub)...)
		}
	}
	return list
}

// TestManPages: each command has a page, which has its flags, and which groff prints without a complaint.
func TestManPages(t *testing.T) {
	dir := t.TempDir()
	root := testApp().root()
	if err := manPages(root, dir); err != nil {
		t.Fatal(err)
	}
	groff, missing := exec.LookPath("groff")
	for _, cmd := range allCommands(root) {
		path := filepath.Join(dir, manName(cmd)+".1")
		page, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, g := range flagGroups(cmd) {
			for _, name := range flagNames(g.flags) {
				if !strings.Contains(string(page), `\fB`+roff("--"+name)+`\fR`) {
					t.Errorf("%s lacks --%s", path, name)
				}
			}
		}
		if missing != nil {
			continue
		}
		out, err := exec.Command(groff, "-man", "-Tutf8", "-Kutf8", "-ww", path).CombinedOutput()
		text := string(out)
		if err != nil || strings.Contains(text, path) || !strings.Contains(text, strings.Fields(cmd.Short)[0]) {
			t.Errorf("%v: %s", err, text)
		}
	}
	if missing != nil {
		t.Skip("groff is not installed: its warnings were not seen")
	}
}
