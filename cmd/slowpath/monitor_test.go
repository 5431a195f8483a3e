//go:build linux

package main

import (
	"os"
	"os/exec"
	"strings"

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
	p := &process{cmd: exec.Command("redis-cli", "-h", host, "-p", port, "monitor"), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = file, &p.errOut
	ts.Check(p.cmd.Start())
	go func() { p.err = p.cmd.Wait(); close(p.ended) }()
	ts.Defer(func() { _ = p.cmd.Process.Kill(); <-p.ended })
	ts.Value(processesKey).(map[string]*process)[args[0]] = p
	contains(ts, false, []string{args[2], "OK"})
}

// contains is "contains FILE TEXT": waits until a file has a text.
func contains(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: contains FILE TEXT")
	}
	eventually(ts, args[1]+" in "+args[0], func() bool {
		body, err := os.ReadFile(ts.MkAbs(args[0]))
		return err == nil && strings.Contains(string(body), args[1])
	})
}
