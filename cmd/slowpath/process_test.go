//go:build linux

package main

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	_ "modernc.org/sqlite"
)

const processesKey = "processes"

// process is a command in the background of a script.
type process struct {
	cmd         *exec.Cmd
	out, errOut bytes.Buffer
	ended       chan struct{}
	err         error // after ended
}

// startProcess is "start NAME COMMAND…". Sets $NAME_PID.
func startProcess(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: start NAME COMMAND...")
	}
	path, err := exec.LookPath(args[1])
	ts.Check(err)
	p := &process{cmd: exec.Command(path, args[2:]...), ended: make(chan struct{})}
	p.cmd.Dir = ts.MkAbs(".")
	p.cmd.Env = environment(ts)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.errOut
	ts.Check(p.cmd.Start())
	go func() { p.err = p.cmd.Wait(); close(p.ended) }()
	ts.Defer(func() { _ = p.cmd.Process.Kill(); <-p.ended })
	ts.Value(processesKey).(map[string]*process)[args[0]] = p
}

func environment(ts *testscript.TestScript) []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "XDG_CACHE_HOME", "LANG", "REDISCLI_AUTH", "NO_COLOR"} {
		if v := ts.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}

func named(ts *testscript.TestScript, args []string) *process {
	if len(args) > 0 {
		if p := ts.Value(processesKey).(map[string]*process)[args[0]]; p != nil {
			return p
		}
	}
	ts.Fatalf("no such process: %v", args)
	return nil
}

var signals = map[string]syscall.Signal{"INT": syscall.SIGINT, "KILL": syscall.SIGKILL}

func signalProcess(ts *testscript.TestScript, neg bool, args []string) {
	ts.Check(named(ts, args).cmd.Process.Signal(signals[args[1]]))
}

// hammerProcess signals until the process has ended: two signals that come at once are one.
func hammerProcess(ts *testscript.TestScript, neg bool, args []string) {
	p := named(ts, args)
	eventually(ts, "the end of "+args[0], func() bool {
		_ = p.cmd.Process.Signal(signals[args[1]]) // it may have ended
		select {
		case <-p.ended:
			return true
		case <-time.After(50 * time.Millisecond):
			return false
		}
	})
}

// finishProcess is "finish NAME CODE". What the process printed is then stdout and stderr.
func finishProcess(ts *testscript.TestScript, neg bool, args []string) {
	p := named(ts, args)
	eventually(ts, "the end of "+args[0], func() bool {
		select {
		case <-p.ended:
			return true
		default:
			return false
		}
	})
	_, _ = ts.Stdout().Write(p.out.Bytes())
	_, _ = ts.Stderr().Write(p.errOut.Bytes())
	checkCode(ts, args[1], p.err)
}

// recorded is "recorded FILE [SOURCE]": the watch has begun, and what it sees, or a source (server), is on disk.
func recorded(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: recorded FILE [SOURCE]")
	}
	source := append(args, "server")[1]
	path := ts.MkAbs(args[0])
	eventually(ts, "rows in "+path, func() bool {
		db, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
		if err != nil {
			return false
		}
		defer db.Close()
		var n int
		err = db.QueryRowContext(context.Background(), "SELECT count(*) FROM sample WHERE source = ?", source).Scan(&n)
		return err == nil && n > 0
	})
}

// cmdline is "cmdline NAME": what other users see of the process in ps.
func cmdline(ts *testscript.TestScript, neg bool, args []string) {
	body, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", named(ts, args).cmd.Process.Pid))
	ts.Check(err)
	_, _ = ts.Stdout().Write(body)
}
