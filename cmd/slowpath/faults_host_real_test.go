//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"slowpath/internal/house/await"

	"github.com/cilium/ebpf"
)

// hostCases: disks that are full or cannot be written, low limits, and namespaces. All need root.
func hostCases() []faultCase {
	all := slices.Concat(diskCases(), limitCases(), namespaceCases(), attachCases())
	for i, c := range all {
		before := c.before
		all[i].before = func(r *faultRun) {
			if os.Geteuid() != 0 {
				r.Skip("file systems are mounted, limits raised and namespaces made as root")
			}
			if before != nil {
				before(r)
			}
		}
	}
	return all
}

// disk mounts a small file system, or one that cannot be written, in the working directory.
func (r *faultRun) disk(name, size string) {
	r.Helper()
	dir, flags, options := filepath.Join(r.dir, name), uintptr(0), "size="+size
	if size == "ro" {
		flags, options = syscall.MS_RDONLY, ""
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		r.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", flags, options); err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
}

func diskCases() []faultCase {
	on := func(size string) func(*faultRun) {
		return func(r *faultRun) { r.watched(""); r.disk("disk", size) }
	}
	full, readOnly := on("1m"), on("ro")
	const noRoom, cannot = "filled its disk|no space left|has only .* free", "read-only file system"
	left := []string{"x.slowpath*", "x.hlog*", "x.json*"}
	all := []faultCase{
		{
			name: "record, full", before: full, codes: "70", says: noRoom, leaves: left, quick: true,
			line: "slowpath record $R --for 60s --probe-rate 600/s -o disk/x.slowpath",
		},
		{
			name: "doctor, full", before: full, codes: "0|1|70", says: noRoom, leaves: left, lines: 2,
			line: "slowpath doctor $R --for 60s --probe-rate 600/s --record disk/x.slowpath",
		},
		{
			name: "bench, full", before: on("200k"), codes: "0|70", says: noRoom, leaves: left, lines: 2,
			line: "slowpath bench $R --for 4s --rate 2000/s --record disk/x.slowpath",
		},
		{
			name: "record, read-only", before: readOnly, codes: "2", says: cannot, quick: true,
			line: "slowpath record $R --for 1s -o disk/x.slowpath",
		},
		{
			name: "doctor, read-only", before: readOnly, codes: "2", says: cannot,
			line: "slowpath doctor $R --for 1s --record disk/x.slowpath",
		},
		{
			name: "bench --record, read-only", before: readOnly, codes: "2", says: cannot,
			line: "slowpath bench $R --for 1s --record disk/x.slowpath",
		},
		{
			name: "bench --hlog, read-only", before: readOnly, codes: "2|70", says: cannot,
			line: "slowpath bench $R --for 1s --hlog disk/x.hlog",
		},
		{
			name: "trace --perfetto, read-only", before: readOnly, codes: "2|70", says: cannot,
			line: "slowpath trace $R --for 1s --perfetto disk/x.json",
		},
		{
			name: "doctor, stdout full", before: full, codes: "70", says: "no space left on device",
			line: "slowpath doctor $R --for 500ms >/dev/full",
		},
		{
			name: "probe, stdout full", before: full, codes: "70", says: "no space left on device", quick: true,
			line: "slowpath probe $R --for 500ms >/dev/full",
		},
		{
			name: "bench, stdout full", before: full, codes: "70", says: "no space left on device",
			line: "slowpath bench $R --for 500ms >/dev/full",
		},
		{
			name: "bench --json, stdout full", before: full, codes: "70", says: "no space left on device",
			line: "slowpath bench $R --for 500ms --json >/dev/full",
		},
		{
			name: "trace, stdout full", before: full, codes: "70", lines: 2, says: "no space left on device",
			line: "slowpath trace $R --for 500ms >/dev/full",
		},
		{
			name: "no such directory", before: full, codes: "2", says: "no such file or directory",
			line: "slowpath record $R --for 500ms -o none/x.slowpath",
		},
		{
			name: "a directory", before: full, codes: "2", says: "disk exists already; name another file", leaves: left,
			line: "slowpath record $R --for 500ms -o disk",
		},
		{name: "stdout closed", before: full, codes: "0|70", says: "", line: "slowpath probe $R --for 500ms >&-"},
		{name: "stderr closed", before: full, codes: "0", says: "", line: "slowpath probe $R --for 500ms 2>&-"},
	}
	for size, name := range map[string]string{"16k": "full", "ro": "read-only"} {
		all = append(all, faultCase{
			name: "doctor, TMPDIR " + name, quick: size == "ro", codes: "0|1", says: "this watch is recorded in /",
			before: func(r *faultRun) { r.watched(""); r.disk("tmp", size) },
			line:   "slowpath doctor $R --for 500ms", lines: 2,
		})
	}
	return ofFamily("disks", all)
}

func ofFamily(name string, all []faultCase) []faultCase {
	for i := range all {
		all[i].family = name
	}
	return all
}

func limitCases() []faultCase {
	var all []faultCase
	for _, l := range []struct{ limit, command, codes, says string }{
		{"--nofile=64", "doctor $R --for 500ms", "0|1", "calls"},
		{"--nofile=64", "probe $R --for 500ms", "0", "kept connection"},
		{"--nofile=64", "bench $R --for 500ms --connections 200", "3", "too many open files; raise the limit"},
		{"--nofile=64", "bench $R --for 500ms --connections 10", "0", "requests per second"},
		{"--nofile=64", "record $R --for 500ms -o x.slowpath", "0", "recorded in"},
		{"--nofile=64", "trace $R --for 500ms", "0|4", "calls seen|ulimit -n"},
		{"--nofile=16", "doctor $R --for 500ms", "0|1", "calls"},
		{"--nofile=16", "trace $R --for 500ms", "4", "too few files .*ulimit -n"},
		{"--as=2000000000", "doctor $R --for 500ms", "0|1", "calls"},
		{"--as=2000000000", "probe $R --for 500ms", "0", "kept connection"},
		{"--memlock=0", "doctor $R --for 500ms", "0|1", "calls"},
		{"--memlock=0", "trace $R --for 500ms", "0|4", "calls seen|memlock"},
		{"--fsize=100000", "record $R --for 60s --probe-rate 600/s -o x.slowpath", "70", "could not be written at "},
		{"--stack=65536", "probe $R --for 500ms", "0", "kept connection"},
		{"--core=0 --rss=1", "probe $R --for 500ms", "0", "kept connection"},
	} {
		all = append(all, faultCase{
			name: l.command + " " + l.limit, quick: l.limit == "--nofile=64" && l.codes != "0|4",
			before: func(r *faultRun) { r.watched("") }, lines: 3,
			line: "prlimit " + l.limit + " slowpath " + l.command, codes: l.codes, says: l.says,
			leaves: []string{"x.slowpath*"},
		})
	}
	return ofFamily("low limits", append(all, faultCase{
		name: "GOMEMLIMIT", before: func(r *faultRun) { r.watched(""); r.set("GOMEMLIMIT", "16MiB") },
		line: "slowpath doctor $R --for 500ms", codes: "0|1", says: "calls", lines: 2,
	}, faultCase{
		name: "one CPU", before: func(r *faultRun) { r.watched("") },
		line: "taskset -c 0 slowpath doctor $R --for 500ms", codes: "0|1", says: "calls", lines: 2,
	}))
}

func namespaceCases() []faultCase {
	quick := []string{"net: doctor", "no capability: doctor", "no /proc: probe"}
	var all []faultCase
	for _, n := range []struct{ name, line, codes, says string }{
		{"net: doctor", "unshare -n slowpath doctor $R --for 500ms", "3", "unreachable"},
		{"net: bench", "unshare -n slowpath bench $R --for 500ms", "3", "unreachable"},
		{"net: trace", "unshare -n slowpath trace $R --for 500ms", "0|4", "calls seen|missing"},
		{"pid: doctor", "unshare -pf --mount-proc slowpath doctor $R --for 500ms", "0|1", "calls"},
		{"pid: trace", "unshare -pf --mount-proc slowpath trace $R --for 500ms", "0|4", "calls seen|namespace"},
		{"pid: record", "unshare -pf --mount-proc slowpath record $R --for 500ms -o x.slowpath", "0", "recorded in"},
		{"pid, old /proc: doctor", "unshare -pf slowpath doctor $R --for 500ms", "0|1", "calls"},
		{"user: doctor", "unshare -Ur slowpath doctor $R --for 500ms", "0|1", "calls"},
		{"user: trace", "unshare -Ur slowpath trace $R --for 500ms", "4", "CAP_BPF|root|cap_bpf|privilege"},
		{"no capability: doctor", drop + "doctor $R --for 500ms", "0|1", "calls"},
		{"no capability: trace", drop + "trace $R --for 500ms", "4", "CAP_BPF|root|cap_bpf|privilege"},
		{"no capability: record", drop + "record $R --for 500ms -o x.slowpath", "0", "recorded in"},
		{"no /proc: doctor", hide("/proc") + "slowpath doctor $R --for 500ms'", "0|1", "calls"},
		{"no /proc: probe", hide("/proc") + "slowpath probe $R --for 500ms'", "0", "kept connection"},
		{"no /sys: doctor", hide("/sys") + "slowpath doctor $R --for 500ms'", "0|1", "calls"},
		{"no /sys: trace", hide("/sys") + "slowpath trace $R --for 500ms'", "0|4", "calls seen|missing|BTF"},
		{"ipc, uts, cgroup: doctor", "unshare -iuC slowpath doctor $R --for 500ms", "0|1", "calls"},
	} {
		all = append(all, faultCase{
			name: n.name, quick: slices.Contains(quick, n.name),
			before: func(r *faultRun) { r.watched("") }, line: n.line, codes: n.codes, says: n.says, lines: 3,
			leaves: []string{"x.slowpath"},
		})
	}
	return ofFamily("namespaces", all)
}

// drop runs what follows as root without capabilities.
const drop = "setpriv --bounding-set=-all --inh-caps=-all --no-new-privs slowpath "

// hide runs what follows with an empty directory in the place of another.
func hide(dir string) string {
	return "unshare -m sh -c 'mount -t tmpfs none " + dir + " && exec "
}

// attachCases: the kernel programs are gone when a command has ended, however it ended.
func attachCases() []faultCase {
	var all []faultCase
	for _, how := range []string{"ends", "is killed", "is stopped and killed"} {
		all = append(all, faultCase{
			name: "trace " + how, codes: "-1|0", quick: how == "is killed", lines: 2,
			before: func(r *faultRun) {
				if err := kernelSource(); err != nil {
					r.Skip(err)
				}
				r.watched("")
			},
			line: "slowpath trace $R --for 1s",
			during: func(r *faultRun) {
				r.eventually("kernel programs of the command", r.attached)
				if how == "is stopped and killed" {
					_ = r.cmd.Process.Signal(syscall.SIGSTOP)
				}
				if how != "ends" {
					_ = r.cmd.Process.Kill()
				}
			},
		})
	}
	return ofFamily("attach and detach", all)
}

// newestProgram is the id of the newest program in the kernel.
func newestProgram() (newest ebpf.ProgramID) {
	for id, err := ebpf.ProgramGetNextID(0); err == nil; id, err = ebpf.ProgramGetNextID(id) {
		newest = id
	}
	return newest
}

// checkDetached waits until the programs that came after one are gone, since others on this machine attach some, too.
func checkDetached(since ebpf.ProgramID) error {
	var there []ebpf.ProgramID
	for id, err := ebpf.ProgramGetNextID(since); err == nil; id, err = ebpf.ProgramGetNextID(id) {
		there = append(there, id)
	}
	for end := time.Now().Add(2 * time.Minute); ; await.Pass(100 * time.Millisecond) {
		there = slices.DeleteFunc(there, func(id ebpf.ProgramID) bool {
			p, err := ebpf.NewProgramFromID(id)
			if err == nil {
				p.Close()
			}
			return err != nil
		})
		if len(there) == 0 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("kernel programs %v are still there", there)
		}
	}
}
