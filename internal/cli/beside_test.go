package cli

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestNotBeside: where a program is not beside this one, it is said how it is had.
func TestNotBeside(t *testing.T) {
	_, err := Beside("slowpath-nothing")
	if !errors.Is(err, ErrMissing) || !strings.HasPrefix(err.Error(), "slowpath-nothing is missing: it is not "+
		"beside /") ||
		!strings.HasSuffix(err.Error(), "; install the package slowpath-nothing, or in the source: make build") {
		t.Errorf("%v", err)
	}
}

func TestCompleted(t *testing.T) {
	for _, c := range []struct {
		out       string
		want      []string
		directive cobra.ShellCompDirective
	}{
		{"redis-7.0.15\nslow-command\ta title\n:4\n", []string{"redis-7.0.15", "slow-command\ta title"}, 4},
		{":4\n", nil, cobra.ShellCompDirectiveNoFileComp},
		{"", nil, cobra.ShellCompDirectiveError},
		{"a\n:x\n", nil, cobra.ShellCompDirectiveError},
	} {
		got, directive := completed([]byte(c.out))
		if !slices.Equal(got, c.want) || directive != c.directive {
			t.Errorf("%q: %q, %d", c.out, got, directive)
		}
	}
}
