//go:build linux

package main

import (
	"os"
	"os/exec"
	"strings"

	"slowpath/internal/cli/clitest"

	"github.com/rogpeppe/go-internal/testscript"
)

// monitorServer is "monitor NAME ADDRESS FILE": redis-cli monitor of a server, into a file, until "signal NAME INT". It
// returns when MONITOR is on.
func monitorServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: monitor NAME ADDRESS FILE")
	}
	host, port, _ := strings.Cut(args[1], ":")
	file, err := os.Create(ts.MkAbs(args[2]))
	ts.Check(err)
	defer file.Close()
	clitest.Begin(ts, args[0], exec.Command("redis-cli", "-h", host, "-p", port, "monitor"), file)
	clitest.Contains(ts, false, []string{args[2], "OK"})
}
