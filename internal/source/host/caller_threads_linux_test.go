package host

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
)

// callNumber is the number of a system call.
func callNumber(t *testing.T, name string) string {
	t.Helper()
	for n, of := range syscallNames[runtime.GOARCH] {
		if of == name {
			return strconv.FormatInt(n, 10)
		}
	}
	t.Fatalf("no number of %s", name)
	return ""
}

// shop is what /proc has of a process with PID 88: thread 88 reads a reply (descriptor 5), 89 is in the epoll that
// waits for it (6), 90 waits for a lock, 91 reads from another peer (7); 8 dials another address at the server's port.
func shop(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{
		"/proc/88/status": "Name:\tshop\nPPid:\t1\nUid:\t0\t0\t0\t0\n", "/proc/88/comm": "shop\n",
		"/proc/88/cmdline": "/srv/shop\x00",
		"/proc/88/fdinfo/6": "pos:\t0\nflags:\t02\ntfd:        9 events: 19 data: 9\n" +
			"tfd:        5 events: 19 data: 5  pos:0 ino:3e9 sdev:8\n",
		"/proc/88/net/tcp": "  sl\n" +
			"   0: 0100007F:C001 0100007F:18EB 01 00000000:00000000 00:00000000 00000000 0 0 1001 1 0\n" +
			"   1: 0100007F:C002 0200007F:18EB 02 00000001:00000000 01:00000000 00000001 0 0 1003 1 0\n",
	}
	for tid, line := range map[int]string{
		88: callNumber(t, "recvfrom") + " 0x5 0x7f 0x1000 0x0", 89: callNumber(t, "epoll_pwait") + " 0x6 0x7f 0x80 0x1",
		90: callNumber(t, "futex") + " 0x7f 0x80 0x2 0x0", 91: callNumber(t, "read") + " 0x7 0x7f 0x1000 0x0",
	} {
		dir := "/proc/88/task/" + strconv.Itoa(tid)
		files[dir+"/syscall"] = line + " 0x0 0x0 0x7ffd 0x7f\n"
		files[dir+"/schedstat"] = "1000 2000 3\n"
		files[dir+"/stat"] = strings.Replace(statLine, " R ", " S ", 1)
	}
	files["/proc/88/stat"] = statLine
	return files
}

// links makes the symbolic links of a fixture.
func links(t *testing.T, root Root, all map[string]string) {
	t.Helper()
	for name, to := range all {
		name = filepath.Join(root.Dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
	}
}

// watchCallerThreads samples the threads of a fixture for some seconds of a bubble's time; half of them later change is
// called.
func watchCallerThreads(t *testing.T, root Root, change func()) *memory {
	t.Helper()
	sink := &memory{}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(clock.WithTimers(t.Context()), 8*time.Second)
		defer cancel()
		time.AfterFunc(4*time.Second, change)
		err := WatchCallerThreads(ctx, CallersOptions{
			FS: root, Clock: clock.New(), Sink: sink,
			Nodes: map[netip.AddrPort]string{netip.MustParseAddrPort("127.0.0.1:6379"): "127.0.0.1:6379"},
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	return sink
}

func (m *memory) waits() (out []recording.ThreadWaits) {
	for _, s := range m.snapshots {
		if s.Name == recording.SnapshotWaits {
			out = append(out, recording.ThreadWaitsOf(s.Body))
		}
	}
	return out
}

// TestCallerThreads: of a process that calls, those threads count that are at a connection to the server.
func TestCallerThreads(t *testing.T) {
	root := tree(t, shop(t))
	links(t, root, map[string]string{
		"/proc/88/ns/net": "net:[1]", "/proc/88/fd/5": "socket:[1001]", "/proc/88/fd/6": "anon_inode:[eventpoll]",
		"/proc/88/fd/7": "socket:[1002]", "/proc/88/fd/8": "socket:[1003]",
	})
	m := watchCallerThreads(t, root, func() { // the dial is given up
		name := root.Path("/proc/88/net/tcp")
		b, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(name, b[:strings.LastIndex(string(b), "   1:")], 0o644)
		}
		if err != nil {
			t.Error(err)
		}
	})
	all := m.waits()
	if len(all) != 1 {
		t.Fatalf("%+v", m.snapshots)
	}
	w := all[0]
	if w.Threads != 2 || w.Others != 2 || w.RedisNs != w.EventsNs || w.Ns != 2*w.RedisNs || w.RedisNs < 6e9 {
		t.Errorf("%+v", w)
	}
	dials := m.kind(recording.KindUnansweredDial)
	if len(dials) != 1 || dials[0].Subject != recording.ProcessPrefix+"88" ||
		recording.DetailOf[recording.UnansweredDial](dials[0]).To != "127.0.0.2:6379" || dials[0].DurationNs < 3e9 {
		t.Errorf("%+v", dials)
	}
	if spots := m.kind(recording.KindBlindSpot); len(spots) != 0 {
		t.Errorf("%+v", spots)
	}
}

// TestCallerThreadsOfServers: a replica has connections to its master, and is no caller.
func TestCallerThreadsOfServers(t *testing.T) {
	files := shop(t)
	files["/proc/88/comm"] = "redis-server\n"
	files["/proc/88/status"] = "Name:\tredis-server\nPPid:\t1\nUid:\t0\t0\t0\t0\n"
	files["/proc/88/cmdline"] = "redis-server *:6380\x00"
	root := tree(t, files)
	links(t, root, map[string]string{"/proc/88/ns/net": "net:[1]", "/proc/88/fd/5": "socket:[1001]"})
	if m := watchCallerThreads(t, root, func() {}); len(m.waits()) != 0 {
		t.Errorf("%+v", m.waits())
	}
}

// TestCallerThreadsInVain: what may not be read, or is no number, is left out and told.
func TestCallerThreadsInVain(t *testing.T) {
	files := shop(t)
	delete(files, "/proc/88/task/90/syscall")
	files["/proc/88/task/91/syscall"] = "" // as that of another user's
	files["/proc/88/task/x/syscall"] = ""
	root := tree(t, files)
	links(t, root, map[string]string{
		"/proc/88/ns/net": "net:[1]", "/proc/88/fd/5": "socket:[1001]", "/proc/88/fd/6": "socket:[x",
		"/proc/88/fd/7": "socket:[99999999999999999999]",
	})
	m := watchCallerThreads(t, root, func() {})
	if all := m.waits(); len(all) != 1 || all[0].Others != 2 || all[0].RedisNs == 0 {
		t.Errorf("%+v", all)
	}
	if spots := m.kind(recording.KindBlindSpot); len(spots) != 1 {
		t.Errorf("%+v", spots)
	}
}

// TestCallerThreadsBounded: of a process with many threads some are sampled, and it is told that others are not.
func TestCallerThreadsBounded(t *testing.T) {
	files := shop(t)
	for tid := 100; tid < 100+maxSampled; tid++ {
		dir := "/proc/88/task/" + strconv.Itoa(tid)
		for _, name := range []string{"/syscall", "/schedstat", "/stat"} {
			files[dir+name] = files["/proc/88/task/90"+name]
		}
	}
	root := tree(t, files)
	links(t, root, map[string]string{"/proc/88/ns/net": "net:[1]", "/proc/88/fd/5": "socket:[1001]"})
	m := watchCallerThreads(t, root, func() {})
	all := m.waits()
	if len(all) != 1 || all[0].Threads+all[0].Others != 4+maxSampled {
		t.Errorf("%+v", all)
	}
	if spots := m.kind(recording.KindBlindSpot); len(spots) != 1 ||
		!strings.Contains(spots[0].Detail, "at most 256 threads of 8 processes") {
		t.Errorf("%+v", spots)
	}
}
