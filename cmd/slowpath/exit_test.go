package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"slowpath/internal/recording"
	"slowpath/internal/source/profile"
	"slowpath/internal/wire/resp"
	"slowpath/internal/wire/target"
)

func TestExitCode(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{usagef("--for x"), exitUsage},
		{fmt.Errorf("reading: %w", recording.ErrNotRecording), exitUsage},
		{target.ErrBadTarget, exitUsage},
		{fmt.Errorf("reading: %w", resp.ErrNotRedis), exitConnect},
		{profile.ErrUnreachable, exitConnect},
		{context.Canceled, exitConnect},
		{fmt.Errorf("the kernel source is %w", errMissing), exitMissing},
		{errors.New("something nobody thought of"), exitInternal},
		{fmt.Errorf("writing the report: %w", fs.ErrPermission), exitInternal},
	} {
		if got := exitCode(c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
}

// fullDisk takes nothing.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// TestExitOnFullDisk: where the verdict cannot be written, it is not the command line that is wrong.
func TestExitOnFullDisk(t *testing.T) {
	var stderr bytes.Buffer
	a := &app{stdin: strings.NewReader(""), stdout: fullDisk{}, stderr: &stderr, env: func(string) string { return "" }}
	if code := a.run(t.Context(), []string{"lab", "list"}); code != exitInternal {
		t.Errorf("exit code %d, want %d: %s", code, exitInternal, stderr.String())
	}
}

// TestAliases: flags can be spelled as they were before, and say so nowhere in the help.
func TestAliases(t *testing.T) {
	a := &app{}
	for _, c := range []struct {
		command    *cobra.Command
		old, today string
		value      string
	}{
		{a.bench(), "warm-up", "warmup", "3s"},
		{a.bench(), "timeout", "call-timeout", "2s"},
		{a.matrix(), "html", "output", "m.html"},
	} {
		for _, spelled := range []string{c.old, c.today} {
			if err := c.command.Flags().Parse([]string{"--" + spelled, c.value}); err != nil {
				t.Errorf("%s --%s: %v", c.command.Name(), spelled, err)
			}
			if got := c.command.Flags().Lookup(c.today).Value.String(); got != c.value {
				t.Errorf("%s --%s: %s is %q", c.command.Name(), spelled, c.today, got)
			}
			c.command.Flags().Lookup(c.today).Value.Set("0s")
		}
		if usages := c.command.Flags().FlagUsages(); strings.Contains(usages, "--"+c.old+" ") {
			t.Errorf("the help of %s has --%s", c.command.Name(), c.old)
		}
	}
}

func TestRatio(t *testing.T) {
	for _, c := range []struct {
		args             []string
		commands, ratios string
		wrong            bool
	}{
		{args: []string{"--ratio", "1:9"}, commands: "set get", ratios: "1 9"},
		{args: []string{"--ratio", "1:0"}, commands: "set", ratios: "1"},
		{args: []string{"--ratio", "0:5"}, commands: "get", ratios: "5"},
		{args: []string{"--command", "incr", "--ratio", "2"}, commands: "incr", ratios: "2"},
		{args: nil, commands: "get"},
		{args: []string{"--ratio", "0:0"}, wrong: true},
		{args: []string{"--ratio", "1:x"}, wrong: true},
		{args: []string{"--ratio", "1:2:3"}, wrong: true},
		{args: []string{"--command", "get", "--ratio", "1:9"}, wrong: true},
	} {
		var f workFlags
		cmd := &cobra.Command{}
		f.add(cmd.Flags())
		if err := cmd.Flags().Parse(c.args); err != nil {
			t.Fatal(err)
		}
		err := f.spellOut()
		if (err != nil) != c.wrong || err != nil && exitCode(err) != exitUsage {
			t.Errorf("%q: %v", c.args, err)
		}
		if got := strings.Join(f.commands, " "); err == nil && got != c.commands {
			t.Errorf("%q: commands %q, want %q", c.args, got, c.commands)
		}
		if got := strings.Join(f.ratios, " "); err == nil && got != c.ratios {
			t.Errorf("%q: shares %q, want %q", c.args, got, c.ratios)
		}
	}
}
