//go:build linux

package clitest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"slowpath/internal/cli"
)

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

// manPages checks that each command has a page, which has its flags, and which groff prints without a complaint.
func manPages(t *testing.T, p Program) {
	t.Helper()
	dir := t.TempDir()
	root := p.Root()
	if err := cli.ManPages(root, dir); err != nil {
		t.Fatal(err)
	}
	groff, missing := exec.LookPath("groff")
	for _, cmd := range allCommands(root) {
		if cli.IsBeside(cmd) {
			continue
		}
		path := filepath.Join(dir, cli.ManName(cmd)+".1")
		page, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, g := range cli.FlagGroups(cmd) {
			for _, name := range cli.FlagNames(g.Flags) {
				if !strings.Contains(string(page), `\fB`+cli.Roff("--"+name)+`\fR`) {
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
