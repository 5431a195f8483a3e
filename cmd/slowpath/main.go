// Command slowpath tells why a Redis or Valkey call was slow.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// version is set by the linker (make build).
var version = "dev"

func main() {
	os.Exit(Main())
}

// Main is the program as a function, so that scripts in tests run it in a process of their own.
func Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}

// run executes one command line and returns the exit code: 0 clean, 1 findings, 2 usage, 3 cannot connect or log in, 4 a
// privilege or kernel feature is missing.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr, env: os.Getenv}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err != nil {
		a.explain(err)
		return exitCode(err)
	}
	return a.code
}
