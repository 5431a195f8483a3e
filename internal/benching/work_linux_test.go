package benching

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"slowpath/internal/cli"
)

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
		f := Work{Given: pflag.NewFlagSet("bench", pflag.ContinueOnError)}
		f.Given.StringArrayVar(&f.Commands, "command", []string{"get"}, "")
		f.Given.StringArrayVar(&f.Ratios, "ratio", nil, "")
		if err := f.Given.Parse(c.args); err != nil {
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
