//go:build linux

package main

import (
	"context"
	"database/sql"

	"slowpath/internal/cli/clitest"

	"github.com/rogpeppe/go-internal/testscript"
	_ "modernc.org/sqlite"
)

// recorded is "recorded FILE [SOURCE]": the watch has begun, and what it sees, or a source (server), is on disk.
func recorded(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: recorded FILE [SOURCE]")
	}
	source := append(args, "server")[1]
	path := ts.MkAbs(args[0])
	clitest.Eventually(ts, "rows in "+path, func() bool { return rowsOf(path, source) > 0 })
}

// rowsOf counts the samples of a source in a recording that is being written.
func rowsOf(path, source string) (n int) {
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	if err != nil {
		return 0
	}
	defer db.Close()
	rows := db.QueryRowContext(context.Background(), "SELECT count(*) FROM sample WHERE source = ?", source)
	_ = rows.Scan(&n) // 0 as long as there is no table
	return n
}
