//go:build linux

package clitest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"slowpath/internal/cli"
	"slowpath/internal/report/layout"
)

// Program is a program whose helps are checked.
type Program struct {
	Root func() *cobra.Command // new ones
	// Own are the program's own arguments of those of a slowpath in an example; nil: it is another program's.
	Own func(args []string) []string
}

// Helps checks the helps and the manual pages of all commands.
func Helps(t *testing.T, p Program) {
	t.Run("examples", func(t *testing.T) { examples(t, p) })
	t.Run("groups", func(t *testing.T) { groups(t, p) })
	t.Run("fits", func(t *testing.T) { fits(t, p) })
	t.Run("man", func(t *testing.T) { manPages(t, p) })
}

// recordCalls is a program in place of slowpath, and of what examples call beside it: it writes its arguments down.
const recordCalls = `#!/bin/sh
[ "${0##*/}" = slowpath ] || exit 0
{ for a in "$@"; do printf '%s\0' "$a"; done; printf '\n'; } >> "$CALLS"
`

// examples checks that each example of a help can be pasted into a shell, and that its flags and arguments are
// accepted. What is said of an example is a comment of the shell: without # it would be arguments.
func examples(t *testing.T, p Program) {
	t.Helper()
	bin, dir := t.TempDir(), t.TempDir()
	for _, name := range []string{"slowpath", "redis-cli", "jq", "timeout"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(recordCalls), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range allCommands(p.Root()) {
		if c.Example == "" {
			t.Errorf("%s has no example", c.CommandPath())
		}
		for line := range strings.Lines(c.Example) {
			line = strings.TrimSpace(inside.Replace(line))
			if len(line) > 0 {
				for _, args := range callsOf(t, line, bin, dir) {
					checkExample(t, p, line, args)
				}
			}
		}
	}
}

// inside keeps what examples write in their directory.
var inside = strings.NewReplacer(" /", " ./", "~/", "./")

// callsOf runs a line in a shell, and gives the arguments of each slowpath in it.
func callsOf(t *testing.T, line, bin, dir string) (calls [][]string) {
	t.Helper()
	record := filepath.Join(dir, "calls")
	if err := os.WriteFile(record, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, sub := range []string{
		"etc/bash_completion.d", "usr/local/share/zsh/site-functions", ".config/fish/completions",
	} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	sh := exec.Command("/bin/sh", "-c", line)
	sh.Dir, sh.Env = dir, []string{"PATH=" + bin, "CALLS=" + record}
	if out, err := sh.CombinedOutput(); err != nil {
		t.Errorf("%s: %v: %s", line, err, out)
	}
	text, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	for call := range strings.Lines(string(text)) {
		args := strings.Split(strings.TrimSuffix(call, "\n"), "\x00")
		calls = append(calls, args[:len(args)-1])
	}
	if len(calls) == 0 {
		t.Errorf("%s calls no slowpath", line)
	}
	return calls
}

// checkExample parses a command line as slowpath does, and does nothing else with it.
func checkExample(t *testing.T, p Program, line string, args []string) {
	t.Helper()
	if args = p.Own(args); args == nil {
		return
	}
	c, rest, err := p.Root().Find(args)
	if err == nil {
		err = c.ParseFlags(rest)
	}
	if err == nil {
		err = c.ValidateArgs(c.Flags().Args())
	}
	if err != nil && !errors.Is(err, pflag.ErrHelp) {
		t.Errorf("%s: %v", line, err)
		return
	}
	if !takesArguments(c) && len(c.Flags().Args()) > 0 {
		t.Errorf("%s: %s takes no arguments, and gets %q", line, c.CommandPath(), c.Flags().Args())
	}
	for _, arg := range c.Flags().Args() {
		if strings.Contains(c.Use, "TARGET") && !strings.ContainsAny(arg, ":./") {
			t.Errorf("%s: the argument %q is no address and no file: write # in front of what is said of it", line, arg)
		}
	}
}

// takesArguments: the usage names some after the command.
func takesArguments(c *cobra.Command) bool { return strings.Contains(c.Use, " ") }

// groups checks that the flags that most callers need come first in each help, and that no group is without a flag.
func groups(t *testing.T, p Program) {
	t.Helper()
	for _, c := range allCommands(p.Root()) {
		all := cli.FlagGroups(c)
		if c.Name() == "bench" {
			continue // it is about loads: all its flags are in groups
		}
		if len(all) == 0 || all[0].Title != "Flags" {
			t.Errorf("%s does not begin with its common flags", c.CommandPath())
		}
		for _, g := range all[:len(all)-1] { // the last is where and who, which not all have
			if len(cli.FlagNames(g.Flags)) == 0 {
				t.Errorf("%s: the group %q is empty", c.CommandPath(), g.Title)
			}
		}
	}
}

// fits checks that no line of a help is longer than the terminal, but for what is to be copied and for single words.
func fits(t *testing.T, p Program) {
	t.Helper()
	for _, c := range allCommands(p.Root()) {
		for _, width := range []int{40, 60, 80, cli.MaxHelpWidth} {
			for line := range strings.Lines(string(cli.HelpOf(c, width))) {
				line = strings.TrimSuffix(line, "\n")
				whole := strings.HasPrefix(line, "  slowpath ") || strings.HasPrefix(line, "More on each: ") ||
					strings.Contains(c.Example, line) || len(strings.Fields(line)) == 1
				named := strings.HasPrefix(strings.TrimSpace(line), "-") &&
					width < cli.TwoColumns // a flag and its kind
				if layout.Width(line) > width && !whole && !named {
					t.Errorf("%s at %d: %q", c.CommandPath(), width, line)
				}
			}
		}
	}
}
