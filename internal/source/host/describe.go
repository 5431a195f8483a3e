package host

import (
	"bytes"
	"fmt"
	"path"
	"strconv"
	"strings"

	"slowpath/internal/source/hostfs"
)

// describe reads who a process is. What may not be read stays empty.
func describe(fs FS, pid int, q Query, port int) (Process, error) {
	dir := fmt.Sprintf("/proc/%d", pid)
	status, err := fs.ReadFile(dir + "/status")
	if err != nil {
		return Process{}, fmt.Errorf("%w: process %d: %w", ErrNotHere, pid, err)
	}
	p := Process{PID: pid, NSPID: pid, Port: port}
	p.Comm = hostfs.StatusField(status, "Name")
	p.PPID, _ = strconv.Atoi(hostfs.StatusField(status, "PPid"))
	p.UID, _ = strconv.Atoi(firstField(hostfs.StatusField(status, "Uid")))
	if ns := strings.Fields(hostfs.StatusField(status, "NSpid")); len(ns) > 0 {
		p.NSPID, _ = strconv.Atoi(ns[len(ns)-1])
	}
	p.Exe, _ = fs.Readlink(dir + "/exe")
	if cmdline, err := fs.ReadFile(dir + "/cmdline"); err == nil {
		first, _, _ := bytes.Cut(cmdline, []byte{0})
		p.Args0 = string(first)
	}
	p.NetNS, _ = fs.Readlink(dir + "/ns/net")
	self, _ := fs.Readlink("/proc/thread-self/ns/net")
	p.OwnNet = p.NetNS != "" && p.NetNS == self
	p.Foreign = q.WantPID != 0 && p.NSPID != q.WantPID
	return p, nil
}

func firstField(s string) string {
	if f := strings.Fields(s); len(f) > 0 {
		return f[0]
	}
	return ""
}

// commandName is the last part of an executable's path or of argv[0], without the title that a server writes behind it
// ("redis-server *:6379" and "redis-rdb-bgsave *:6379" are one word each).
func commandName(args0 string) string {
	name, _, _ := strings.Cut(args0, " ")
	return path.Base(name)
}

// Replaced reports whether a file that a process executes code of was replaced or removed while it runs, as by an
// upgrade. Then it is found in /proc/PID/map_files alone, which takes CAP_SYS_ADMIN.
func Replaced(fs FS, pid int) bool {
	if pid == 0 {
		return false
	}
	maps, err := fs.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return false
	}
	for line := range bytes.Lines(maps) {
		_, rest, _ := bytes.Cut(line, []byte(" "))
		executable := len(rest) > 2 && rest[2] == 'x'
		inMemory := bytes.Contains(line, []byte(" /memfd:")) || bytes.Contains(line, []byte(" /dev/zero "))
		if executable && !inMemory && bytes.HasSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte(" (deleted)")) {
			return true
		}
	}
	return false
}
