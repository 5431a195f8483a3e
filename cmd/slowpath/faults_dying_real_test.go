//go:build linux

package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"slowpath/internal/cli"
	"slowpath/internal/house/await"
	"slowpath/internal/lab/fleet"
)

// lasting are the commands that watch for long, with what they print when they are ended.
var lasting = []struct{ name, line, codes, says string }{
	{"doctor", "slowpath doctor $R --for 60s --record x.slowpath", "0|1", "slowpath's own calls: |[0-9]+ calls"},
	{"record", "slowpath record $R --for 60s -o x.slowpath", "0", "recorded in x.slowpath"},
	{"probe", "slowpath probe $R --for 60s --timeout 1s", "0", "kept connection"},
	{"bench", "slowpath bench $R --for 60s --call-timeout 1s --record x.slowpath", "0", "requests per second"},
	{"trace", "slowpath trace $R --for 60s", "0", "calls seen"},
	{"topology watch", "slowpath topology watch $R --for 60s", "0", "in .*: 0 slots moved"},
}

// watched starts a server for the command, and sets R.
func (r *faultRun) watched(command string) *fleet.Instance {
	r.Helper()
	start := r.server
	if strings.HasPrefix(command, "topology") {
		start = r.clusterNode
	}
	i := start()
	r.set("R", i.Addr)
	return i
}

// awaitWatching waits until the command of lasting watches.
func (r *faultRun) awaitWatching(command string, server *fleet.Instance) {
	r.Helper()
	switch command {
	case "trace":
		r.eventually("kernel programs of the command", r.attached)
	case "topology watch":
		r.eventually("its first line", func() bool { return strings.Contains(r.errOut.String(), "watching 2 masters") })
	case "probe":
		r.eventually("calls of the command", func() bool { return infoOf(r, server, "cmdstat_ping:calls=") > 9 })
	default:
		r.eventually("a connection of the command", func() bool { return infoOf(r, server, "connected_clients:") > 1 })
		if strings.Contains(r.line, "x.slowpath") {
			source := "server"
			if command == "bench" {
				source = "load"
			}
			r.eventually("rows", func() bool { return rowsOf(filepath.Join(r.dir, "x.slowpath"), source) > 0 })
		}
	}
}

// infoOf reads a number of INFO. One of the connected clients is ours.
func infoOf(r *faultRun, server *fleet.Instance, field string) (n int) {
	r.Helper()
	info, err := server.Do(r.Context(), "INFO", "all")
	if err != nil {
		r.Fatal(err)
	}
	lines := bufio.NewScanner(strings.NewReader(fmt.Sprint(info)))
	for lines.Scan() {
		_, _ = fmt.Sscanf(lines.Text(), field+"%d", &n)
	}
	return n
}

// attached reports whether the command holds a program that is attached in the kernel.
func (r *faultRun) attached() bool {
	dir := fmt.Sprintf("/proc/%d/fd", r.cmd.Process.Pid)
	files, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, f := range files {
		if to, err := os.Readlink(filepath.Join(dir, f.Name())); err == nil && to == "anon_inode:bpf_link" {
			return true
		}
	}
	return false
}

// dyingCases: the server of a command dies, freezes, or comes back.
func dyingCases() []faultCase {
	var all []faultCase
	for i, death := range []string{"KILL", "TERM", "STOP", "KILL and restart", "STOP and CONT"} {
		for k, l := range lasting {
			var server *fleet.Instance
			c := faultCase{
				family: "dying servers", name: l.name + " " + death, quick: (i+k)%len(lasting) == 0,
				before: func(r *faultRun) { server = r.watched(l.name) },
				line:   strings.ReplaceAll(l.line, "60s", "2s"), codes: l.codes, says: l.says, lines: 6,
				during: func(r *faultRun) { r.awaitWatching(l.name, server); r.kill(server, death) },
			}
			if l.name == "topology watch" {
				c.line = strings.ReplaceAll(c.line, "2s", "4s")
			}
			if strings.Contains(l.line, "x.slowpath") {
				c.leaves = []string{"x.slowpath"}
				c.after = func(r *faultRun) { r.checkWhole("x.slowpath") }
			}
			all = append(all, c)
		}
	}
	return all
}

func (r *faultRun) kill(server *fleet.Instance, how string) {
	r.Helper()
	signal := map[string]syscall.Signal{"KILL": syscall.SIGKILL, "TERM": syscall.SIGTERM, "STOP": syscall.SIGSTOP}
	first, then, _ := strings.Cut(how, " and ")
	if err := syscall.Kill(server.PID, signal[first]); err != nil {
		r.Fatal(err)
	}
	pid := server.PID
	switch then {
	case "restart":
		r.eventually("the end of the server", func() bool { return !server.Running() })
		if err := server.Restart(context.Background()); err != nil {
			r.Fatal(err)
		}
	case "CONT":
		await.Pass(300 * time.Millisecond) // as long as it is frozen
		_ = syscall.Kill(pid, syscall.SIGCONT)
	default:
		r.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	}
}

// signalCases: the command is signalled. It ends early, as if its time were over.
func signalCases() []faultCase {
	var all []faultCase
	for i, name := range []string{"INT", "TERM", "HUP", "INT twice", "INT and HUP"} {
		for k, l := range lasting {
			var server *fleet.Instance
			c := faultCase{
				family: "signals", name: l.name + " " + name, quick: (i+k)%len(lasting) == 0,
				before: func(r *faultRun) { server = r.watched(l.name) },
				line:   l.line, codes: l.codes, says: l.says, lines: 4,
				during: func(r *faultRun) { r.awaitWatching(l.name, server); r.signal(name) },
			}
			if strings.Contains(l.line, "x.slowpath") {
				c.leaves = []string{"x.slowpath"}
				c.after = func(r *faultRun) { r.checkWhole("x.slowpath") }
			}
			all = append(all, c)
		}
	}
	return all
}

func (r *faultRun) signal(name string) {
	first, then, _ := strings.Cut(name, " ")
	number := map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP}
	_ = r.cmd.Process.Signal(number[first])
	switch then {
	case "twice": // at once, as one that the kernel and the shell send: they are one
		_ = r.cmd.Process.Signal(number[first])
	case "and HUP":
		_ = r.cmd.Process.Signal(syscall.SIGHUP)
	}
}

// checkWhole: a verdict is given of a recording that the command left, and nothing is beside it.
func (r *faultRun) checkWhole(file string) {
	r.Helper()
	if code, stdout, stderr := judge(r.T, "report", filepath.Join(r.dir, file)); code != cli.ExitClean || stderr != "" {
		r.Errorf("report %s: exit code %d, %s%s", file, code, stdout, stderr)
	}
}
