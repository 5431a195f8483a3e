package main

import (
	"io"
	"os"
	"strings"

	"slowpath/internal/cli"
)

// appOn is slowpath that prints into these, without a terminal and an environment.
func appOn(stdout, stderr io.Writer) *app {
	return newApp(&cli.Program{
		Stdin: strings.NewReader(""), Stdout: stdout, Stderr: stderr, Env: func(string) string { return "" },
		Version: version,
	})
}

// testApp is slowpath without a terminal.
func testApp() *app {
	a := appOn(io.Discard, io.Discard)
	a.Env = os.Getenv
	return a
}
