//go:build linux

package main

import (
	"strings"
	"testing"

	"slowpath/internal/cli"

	"github.com/spf13/cobra"
)

// TestAliases: flags can be spelled as they were before, and say so nowhere in the help.
func TestAliases(t *testing.T) {
	a := newApp(&cli.Program{})
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
