//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"slowpath/internal/house/await"
)

// agentCases: what an agent is given to keep its files in, or as its configuration, is of somebody else, is gone, or is
// full; and targets that are not what a command line says.
func agentCases() []faultCase {
	const serve = "slowpath serve --listen 127.0.0.1:0 --data data $R"
	watched := func(r *faultRun) {
		for dir := r.dir; strings.Contains(dir, "TestFaults"); dir = filepath.Dir(dir) {
			if err := os.Chmod(dir, 0o755); err != nil { // an agent of root becomes another user
				r.Fatal(err)
			}
		}
		r.watched("")
	}
	at := func(make func(path string) error, name string) func(*faultRun) {
		return func(r *faultRun) {
			watched(r)
			if err := make(filepath.Join(r.dir, name)); err != nil {
				r.Fatal(err)
			}
		}
	}
	watches := func(r *faultRun) bool { return strings.Contains(r.errOut.String(), "watching") }
	own := []string{"*"}
	all := []faultCase{
		{
			name: "data that others may write", codes: "2", says: "data", line: serve, quick: true,
			before: at(func(path string) error {
				if err := os.Mkdir(path, 0o777); err != nil {
					return err
				}
				return os.Chmod(path, 0o777)
			}, "data"),
		},
		{
			name: "data is a link", codes: "2", says: "data", line: serve,
			before: at(func(path string) error { return os.Symlink("/etc", path) }, "data"), leaves: []string{"data"},
		},
		{
			name: "data has files of others", codes: "2", says: "data", line: serve, leaves: []string{"notes"},
			before: at(func(path string) error {
				if err := os.Mkdir(path, 0o700); err != nil {
					return err
				}
				return os.WriteFile(filepath.Join(path, "notes"), []byte("mine"), 0o600)
			}, "data"),
		},
		{
			name: "the configuration is a FIFO", codes: "2", says: "conf", line: serve + " --config conf",
			before: at(func(path string) error { return syscall.Mkfifo(path, 0o600) }, "conf"),
			leaves: []string{"conf"}, quick: true,
		},
		{
			name: "data is removed", codes: "0|70", says: "watching", line: serve, lines: 40, before: watched,
			leaves: own,
			during: func(r *faultRun) {
				r.eventually("the watch", func() bool { return watches(r) })
				if err := os.RemoveAll(filepath.Join(r.dir, "data")); err != nil {
					r.Fatal(err)
				}
				await.Pass(2 * time.Second) // it writes each second
				r.signal("TERM")
			},
		},
		{
			name: "the disk is full", codes: "0|70", says: "watching", line: serve, lines: 40, leaves: own,
			before: func(r *faultRun) {
				watched(r)
				r.disk("data", "2m")
				if err := os.Chmod(filepath.Join(r.dir, "data"), 0o700); err != nil {
					r.Fatal(err)
				}
			},
			during: func(r *faultRun) {
				r.eventually("the watch", func() bool { return watches(r) })
				full, err := os.Create(filepath.Join(r.dir, "data", "other"))
				if err != nil {
					r.Fatal(err)
				}
				defer full.Close()
				for block := make([]byte, 1<<12); err == nil; _, err = full.Write(block) {
				}
				await.Pass(2 * time.Second)
				r.signal("TERM")
			},
		},
		{
			name: "bench -c of a single server", codes: "2", says: "cluster", line: "slowpath bench $R -c",
			before: watched,
		},
		{
			name: "--pprof of no JVM", codes: "2", says: "JVM|pprof", line: "slowpath doctor $R --for 1s --pprof 1",
			before: watched,
		},
	}
	for i, c := range all {
		all[i].family = "agents"
		before := c.before
		all[i].before = func(r *faultRun) {
			if os.Geteuid() != 0 {
				r.Skip("an agent gives root up, and file systems are mounted as root")
			}
			before(r)
		}
	}
	return all
}
