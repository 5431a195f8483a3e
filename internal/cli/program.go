// Package cli is what the programs of slowpath have in common on the command line: exit codes, help, errors that name
// the fix, the line of a terminal that says what goes on, and what Ctrl-C leads to.
package cli

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// Program is one command line and what it may touch.
type Program struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Env            func(string) string
	Version        string // of slowpath
	Code           int    // of an exit without error
	Scratch        Scratch
	status         status
}

// NewProgram is that of this process, in a version. Its stderr keeps the live line out of the way.
func NewProgram(version string) *Program {
	p := &Program{Version: version, Stdin: os.Stdin, Stdout: os.Stdout, Env: os.Getenv}
	p.Stderr = besideStatus{p, os.Stderr}
	return p
}

// Main executes the command line of this process and returns the exit code.
func (p *Program) Main(root *cobra.Command, told func(*cobra.Command, error) error) int {
	ctx, stop := p.interruptible(context.Background())
	defer stop()
	return p.Run(ctx, root, os.Args[1:], told)
}

// Run executes a command line and returns the exit code. told may say more of an error, such as its exit code.
func (p *Program) Run(ctx context.Context, root *cobra.Command, args []string,
	told func(*cobra.Command, error) error,
) int {
	root.SetArgs(args)
	root.SetIn(p.Stdin)
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	cmd, err := root.ExecuteContextC(ctx)
	p.ProgressDone()
	switch {
	case err == nil, ReaderGone(err):
		return p.Code
	default:
		err = told(cmd, err)
		p.Explain(err)
		return ExitCode(err)
	}
}

// Prepare makes a command the root of a program: its help, its errors, and the order of commands are those of all.
func (p *Program) Prepare(c *cobra.Command) {
	c.SilenceErrors, c.SilenceUsage = true, true
	c.Args = Subcommand
	// of every command
	c.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return checkDurations(cmd.Flags()) }
	c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	c.CompletionOptions.DisableDefaultCmd = true // it is our own
	c.SetFlagErrorFunc(flagError)
	c.SetHelpFunc(p.help)
	c.SetHelpCommand(helpCommand())
	// -h is the host, as in redis-cli; help has no short form where there is a host.
	c.Flags().BoolP("version", "v", false, "the version in one line")
	c.PersistentFlags().Bool("help", false, "this help")
	cobra.EnableCommandSorting = false // those that most need come first
}

// InOrder lists the flags of all commands as they are defined: those that most need first.
func InOrder(c *cobra.Command) {
	c.Flags().SortFlags = false
	for _, sub := range c.Commands() {
		InOrder(sub)
	}
}
