//go:build linux

package main

import (
	"strings"
	"testing"

	"slowpath/internal/benching"
	"slowpath/internal/cli"

	"github.com/spf13/cobra"
)

// TestAliases: flags can be spelled as they were before, and say so nowhere in the help.
func TestAliases(t *testing.T) {
	a := &app{Program: &cli.Program{}}
	for _, c := range []struct {
		command    *cobra.Command
		old, today string
		value      string
	}{
		{a.bench(), "warm-up", "warmup", "3s"},
		{a.bench(), "timeout", "call-timeout", "2s"},
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
		var f benching.Work
		cmd := &cobra.Command{}
		addWorkFlags(cmd.Flags(), &f)
		if err := cmd.Flags().Parse(c.args); err != nil {
			t.Fatal(err)
		}
		err := f.SpellOut()
		if (err != nil) != c.wrong || err != nil && cli.ExitCode(err) != cli.ExitUsage {
			t.Errorf("%q: %v", c.args, err)
		}
		if got := strings.Join(f.Commands, " "); err == nil && got != c.commands {
			t.Errorf("%q: commands %q, want %q", c.args, got, c.commands)
		}
		if got := strings.Join(f.Ratios, " "); err == nil && got != c.ratios {
			t.Errorf("%q: shares %q, want %q", c.args, got, c.ratios)
		}
	}
}
