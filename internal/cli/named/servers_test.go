package named

import (
	"errors"
	"testing"

	"github.com/spf13/cobra"

	"slowpath/internal/cli"
	"slowpath/internal/wire/target"
)

// TestNotCommand: a name without an address that is spelled about as a command may have been meant as one.
func TestNotCommand(t *testing.T) {
	topology := &cobra.Command{Use: "topology"}
	topology.AddCommand(&cobra.Command{Use: "watch [TARGET...]", Run: func(*cobra.Command, []string) {}})
	(&cobra.Command{Use: "slowpath"}).AddCommand(topology)
	for addr, want := range map[string]string{
		"wach:6379":  "connecting to wach:6379: no address; or was a command meant: slowpath topology watch",
		"redis:6379": "connecting to redis:6379: no address",
	} {
		unknown := &target.Error{Addr: addr, Kind: target.ErrNameNotFound, Text: "no address"}
		line := &CommandLine{Program: &cli.Program{}}
		got := line.Elsewhere(topology, unknown)
		if got.Error() != want || !errors.Is(got, target.ErrNameNotFound) {
			t.Errorf("%s: %v", addr, got)
		}
	}
}
