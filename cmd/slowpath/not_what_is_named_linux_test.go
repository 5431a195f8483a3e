package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"slowpath/internal/cli"
	"slowpath/internal/wire/wiretest"
)

// TestNotWhatIsNamed: where a flag names what is of another kind, that is said in a line, with the exit code of a wrong
// command line.
func TestNotWhatIsNamed(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	single := wiretest.New(t, func(command string) string {
		switch {
		case strings.HasPrefix(command, "CLUSTER"):
			return "-ERR This instance has cluster support disabled\r\n"
		case command == "PING":
			return "+PONG\r\n"
		}
		return "+OK\r\n"
	})
	at := single.Target().Addr()
	for line, want := range map[string]string{
		"bench -c " + at + " --requests 1":                                                     "is not in a cluster",
		"doctor " + at + " --no-tap --pprof " + strconv.Itoa(os.Getpid()):                      "and not java",
		"serve --check-config --config " + fifo:                                                "not a regular file",
		"serve --check-config --data " + t.TempDir() + " --token-file " + fifo:                 "not a regular file",
		"serve --check-config --data . --recordings s3://abc --recordings-credentials " + fifo: "not a regular",
	} {
		var stdout, stderr bytes.Buffer
		code := appOn(&stdout, &stderr).execute(single.Reached(t.Context()), strings.Fields(line))
		if said := stderr.String(); code != cli.ExitUsage || !strings.Contains(said, want) ||
			strings.Count(said, "\n") != 1 || stdout.Len() > 0 {
			t.Errorf("%s: exit code %d, %q, %q", line, code, stdout.String(), said)
		}
	}
}
