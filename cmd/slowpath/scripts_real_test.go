//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"slowpath/internal/cli"
	"slowpath/internal/cli/clitest"
	"slowpath/internal/diagnose/corpus"
	"slowpath/internal/house/needs"
	"slowpath/internal/lab/codis"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == "codis-proxy" { // as a fleet executes it: codis-proxy --port PORT SERVER...
		if err := errors.Join(codis.Rename(), codis.Listen(context.Background(), os.Args[3], os.Args[4:])); err != nil {
			log.Fatal(err)
		}
		return
	}
	testscript.Main(m, map[string]func(){
		"slowpath":         func() { os.Exit(Main()) },
		syntheticRecording: command(writeSynthetic),
		openConnections:    command(keepOpen),
	})
}

// command makes a command of a function.
func command(run func() error) func() {
	return func() {
		if err := run(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(cli.ExitInternal)
		}
	}
}

// TestScripts runs testdata/*.txtar. Their own commands:
//
//	redis NAME [tls|socket|auth=PASSWORD|acl=LINE|config=LINE|cluster=MASTERS]…
//	               starts a real server; sets $NAME (its address), $NAME_CA, $NAME_SOCKET
//	freeze NAME    stops its process with SIGSTOP until the script ends
//	quota NAME DURATION
//	               puts it into a cgroup that may use so much CPU time of each 100 ms, or changes that; 0s: all
//	fake NAME KIND starts a peer that misbehaves (fakes_test.go); sets $NAME
//	reached NAME   waits until somebody has connected to the fake
//	exits CODE[|CODE] COMMAND…
//	complains CODE COMMAND…
//	               exits, with nothing on stdout and one line on stderr
//	start NAME COMMAND…, signal NAME INT|KILL|HUP|STOP|CONT, hammer NAME SIGNAL, finish NAME CODE
//	               a command in the background; hammer signals until it has ended
//	terminal NAME COMMAND…, enter NAME TEXT, fits NAME, hangup NAME
//	               the same on a terminal of its own, of $COLUMNS columns; enter waits for a text on it and presses
//	               Enter; fits: no line was longer; hangup: it is gone. After finish, stdout is all that it has shown.
//	type NAME REGEXP KEYS
//	               waits until it has shown a text since keys were typed, and types (\r: Enter, \x1b: Esc)
//	says NAME REGEXP
//	               waits until it has printed that
//	opens NAME FILE
//	               waits until it has opened the file
//	cmdline NAME   prints what ps shows of it
//	recorded FILE [SOURCE]
//	               waits until the recording holds what a source saw
//	cli ADDRESS COMMAND…
//	               one call to a server; stdout is its reply
//	monitor NAME ADDRESS FILE
//	               redis-cli monitor into a file, until it is signalled
//	contains FILE TEXT
//	               waits until a file has a text
//	load ADDRESS   a little load of GET until the script ends
//	churn ADDRESS  much load until the script ends: a new connection for each GET
//	bounded FILE BYTES
//	               the recording, and what is beside it, takes at most a tenth more
//	disk NAME SIZE|ro
//	               mounts a small file system until the script ends, or one that cannot be written; needs root
//	json FILE PATH [VALUE]
//	               has this value in every document of FILE
//	moment NAME SECONDS
//	               sets $NAME to the time of the day that is so far ahead
//	counted ADDRESS COMMAND FILE PATH
//	               the number at PATH is that of the calls that the server has counted
//	page NAME PATH REGEXP, page NAME POST PATH
//	               waits until what the page of a "slowpath serve" has at this path matches; the body is stdout.
//	               POST sets $INCIDENT, if it makes one.
//	visit NAME PATH...
//	               several browsers ask for these at the same time, again and again
//	halve FROM TO  copies the first half
//	unpack SCENARIO FILE
//	               the recording that the corpus has of a scenario
func TestScripts(t *testing.T) {
	needs.Real(t)
	action, err := filepath.Abs("../../packaging/action")
	if err != nil {
		t.Fatal(err)
	}
	runScripts(t, "testdata", "ACTION="+action)
}

// runScripts runs the scripts of a folder, with more in their environment.
func runScripts(t *testing.T, dir string, env ...string) {
	t.Helper()
	clitest.HangupEnds(t)
	lab := newServers(t)
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Vars = append(e.Vars, env...)
			return clitest.SetUp(e)
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "redis":
				return lab != nil, nil
			case "root":
				return os.Geteuid() == 0, nil
			case "bpf":
				return kernelSource() == nil, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: clitest.Commands(map[string]func(*testscript.TestScript, bool, []string){
			"redis": lab.start, "freeze": lab.freeze, "quota": lab.quota,
			"fake": startFake, "reached": reached,
			"recorded": recorded, "halve": halve, "unpack": unpack,
			"cli": callServer, "load": makeLoad, "churn": churn, "bounded": bounded, "disk": mountDisk,
			"moment": moment, "counted": counted, "monitor": monitorServer,
			"page": askPage, "visit": visit,
		}),
	})
}

func halve(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: halve FROM TO")
	}
	body, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), body[:len(body)/2], 0o600))
}

func unpack(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: unpack SCENARIO FILE")
	}
	ts.Check(corpus.Unpack(args[0], ts.MkAbs(args[1])))
}

func mountDisk(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: disk NAME SIZE|ro")
	}
	dir, flags, options := ts.MkAbs(args[0]), uintptr(syscall.MS_RDONLY), ""
	if args[1] != "ro" {
		flags, options = 0, "size="+args[1]
	}
	ts.Check(os.Mkdir(dir, 0o700))
	ts.Check(syscall.Mount("tmpfs", dir, "tmpfs", flags, options))
	ts.Defer(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
}

func bounded(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: bounded FILE BYTES")
	}
	limit, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	files, err := filepath.Glob(ts.MkAbs(args[0]) + "*")
	ts.Check(err)
	bytes := int64(0)
	for _, name := range files {
		st, err := os.Stat(name)
		ts.Check(err)
		bytes += st.Size()
	}
	if len(files) == 0 || bytes > limit*11/10 {
		ts.Fatalf("%d files of %d bytes; the limit is %d", len(files), bytes, limit)
	}
}

// value gives that of the option "name=value".
func value(options []string, name string) (string, bool) {
	i := slices.IndexFunc(options, func(o string) bool { return o == name || strings.HasPrefix(o, name+"=") })
	if i < 0 {
		return "", false
	}
	return strings.TrimPrefix(strings.TrimPrefix(options[i], name), "="), true
}
