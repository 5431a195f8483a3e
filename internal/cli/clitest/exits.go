//go:build linux

// Package clitest is for tests of programs: the commands of their scripts (testscript), and checks of all helps.
package clitest

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// Commands are the commands of all scripts, and these.
func Commands(more map[string]func(*testscript.TestScript, bool, []string),
) map[string]func(*testscript.TestScript, bool, []string) {
	all := map[string]func(*testscript.TestScript, bool, []string){
		"exits": exits, "complains": complains, "json": JSON, "contains": Contains,
		"start": startProcess, "terminal": startOnTerminal, "enter": pressEnter, "fits": fitsTerminal,
		"type": typeKeys, "hangup": hangUp, "signal": signalProcess, "hammer": hammerProcess, "says": processSays,
		"opens": processOpens, "finish": finishProcess, "cmdline": cmdline,
	}
	maps.Copy(all, more)
	return all
}

// exits runs a command and compares its exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	checkCode(ts, args[0], ts.Exec(args[1], args[2:]...))
}

func checkCode(ts *testscript.TestScript, want string, err error) {
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if !slices.Contains(strings.Split(want, "|"), strconv.Itoa(code)) {
		ts.Fatalf("exit code %d, want %s", code, want)
	}
}

// complains is exits for an error: one line that begins with the program's name.
func complains(ts *testscript.TestScript, neg bool, args []string) {
	exits(ts, neg, args)
	if out := ts.ReadFile("stdout"); out != "" {
		ts.Fatalf("an error prints on stdout: %q", out)
	}
	line, isLine := strings.CutSuffix(ts.ReadFile("stderr"), "\n")
	clean := !strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r == 0x7f })
	if !isLine || !clean || !strings.HasPrefix(line, "slowpath: ") || strings.Contains(line, "%!") {
		ts.Fatalf("not one clear line: %q", line)
	}
}

// Contains is "contains FILE TEXT": waits until a file has a text.
func Contains(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: contains FILE TEXT")
	}
	Eventually(ts, args[1]+" in "+args[0], func() bool {
		body, err := os.ReadFile(ts.MkAbs(args[0]))
		return err == nil && strings.Contains(string(body), args[1])
	})
}

// Eventually polls, since no state is waited for by a sleep.
func Eventually(ts *testscript.TestScript, what string, ok func() bool) {
	const patience = time.Minute
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if ok() {
			return
		}
	}
	ts.Fatalf("waited %v for %s", patience, what)
}
