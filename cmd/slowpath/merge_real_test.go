//go:build linux

package main

import (
	"bufio"
	"io"
	"strconv"
	"strings"
	"time"

	"slowpath/internal/cli/clitest"

	"github.com/rogpeppe/go-internal/testscript"
)

// moment is "moment NAME SECONDS": sets $NAME to the wall clock so many seconds from now, for a start barrier.
func moment(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: moment NAME SECONDS")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	ts.Setenv(args[0], time.Now().Add(time.Duration(n)*time.Second).UTC().Format(time.RFC3339Nano))
}

// counted is "counted ADDRESS COMMAND FILE PATH": the number in FILE is that of the calls of COMMAND that the server
// has counted.
func counted(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: counted ADDRESS COMMAND FILE PATH")
	}
	c, _ := dial(ts, []string{args[0], "PING"})
	defer c.Close()
	_, err := io.WriteString(c, request("INFO", "commandstats")+request("QUIT"))
	ts.Check(err)
	calls := ""
	for in := bufio.NewScanner(c); in.Scan(); {
		if rest, ok := strings.CutPrefix(in.Text(), "cmdstat_"+args[1]+":calls="); ok {
			calls, _, _ = strings.Cut(rest, ",")
		}
	}
	if calls == "" {
		ts.Fatalf("the server has counted no %s", args[1])
	}
	clitest.JSON(ts, false, []string{args[2], args[3], calls})
}
