// Command slowpath tells why a Redis or Valkey call was slow.
package main

import (
	"context"
	"io"
	"os"
)

func main() {
	os.Exit(Main())
}

// Main is the program as a function, so that scripts in tests run it in a process of their own.
func Main() int {
	a := &app{stdin: os.Stdin, stdout: os.Stdout, env: os.Getenv}
	a.stderr = besideStatus{a, os.Stderr}
	ctx, stop := a.interruptible(context.Background())
	defer stop()
	return a.run(ctx, os.Args[1:])
}

// app is one command line and what it may touch.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	env            func(string) string
	code           int // of an exit without error
	where          whereFlags
	status         status
	assumed        bool // the target is the default one: nothing named another
	scratch        scratch
	page           htmlPage
	expectHealthy  bool // any other verdict is exitFindings
}

// run executes the command line and returns the exit code.
func (a *app) run(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	cmd, err := root.ExecuteContextC(ctx)
	a.progressDone()
	switch {
	case err == nil, readerGone(err):
		return a.code
	default:
		a.explain(a.elsewhere(cmd, err))
		return exitCode(err)
	}
}
