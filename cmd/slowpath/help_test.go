//go:build linux

package main

import (
	"testing"

	"github.com/spf13/cobra"

	"slowpath/internal/cli/clitest"
)

func TestHelps(t *testing.T) {
	clitest.Helps(t, clitest.Program{
		Root: func() *cobra.Command { return testApp().root() },
		Own:  func(args []string) []string { return args },
	})
}
