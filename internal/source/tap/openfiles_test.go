//go:build linux

package tap

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"slowpath/internal/recording"
	"slowpath/internal/source/host"
	"slowpath/internal/source/hostfs"
)

func TestOpenFile(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "a\x1bfile"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if file, _ := openFile(host.Root{}, os.Getpid(), int(f.Fd())); file != "a?file" {
		t.Errorf("it is called %q", file)
	}
	if err := os.Remove(f.Name()); err != nil {
		t.Fatal(err)
	}
	l, err := net.ListenTCP("tcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	sock, err := l.File()
	if err != nil {
		t.Fatal(err)
	}
	defer sock.Close()
	for what, fd := range map[string]int{
		"removed": int(f.Fd()), "a socket": int(sock.Fd()), "not open": 1 << 20,
		"none": -1,
	} {
		if file, device := openFile(host.Root{}, os.Getpid(), fd); file != "" || device != "" {
			t.Errorf("%s: %q on %q", what, file, device)
		}
	}
}

// TestMappedFilesAreBounded: of a process with more mappings than are read, nothing is searched, and the error says so.
func TestMappedFilesAreBounded(t *testing.T) {
	dir := t.TempDir()
	maps := filepath.Join(dir, "proc/7/maps")
	if err := os.MkdirAll(filepath.Dir(maps), 0o700); err != nil {
		t.Fatal(err)
	}
	line := "7f0000000000-7f0000001000 r-xp 00000000 08:01 1 /usr/lib/libssl.so.3\n"
	if err := os.WriteFile(maps, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	files := hostfs.Root{Dir: dir}
	all := func(string) bool { return true }
	want := filepath.Join(dir, "proc/7/root/usr/lib/libssl.so.3")
	if got, err := mappedFiles(files, 7, all); err != nil || len(got) != 1 || got[0] != want {
		t.Errorf("%q, %v", got, err)
	}
	if err := os.Truncate(maps, hostfs.MaxFile+1); err != nil {
		t.Fatal(err)
	}
	if got, err := mappedFiles(files, 7, all); !errors.Is(err, hostfs.ErrTooLarge) {
		t.Errorf("%q, %v", got, err)
	}
}

// TestBlockedOnFile: a server that syncs its append-only file after each write is blocked on that file, and on the
// device that has it.
func TestBlockedOnFile(t *testing.T) {
	n := serverAt(t, onePort(t, 1), "--appendonly", "yes", "--appendfsync", "always")
	stop := runTap(t, Options{Nodes: []Node{n}, MinWork: 10 * time.Microsecond})
	if out, err := exec.Command("redis-cli", "-p", strconv.Itoa(n.Port), "-r", "300", "SET", "key",
		"value").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	rec := stop()
	device := func(d string) bool { return d == "" }
	var st syscall.Stat_t
	if err := syscall.Stat(t.TempDir(), &st); err != nil {
		t.Fatal(err)
	}
	for _, at := range blockDevices(t) {
		if number, err := os.ReadFile(filepath.Join(at, "dev")); err == nil &&
			strings.TrimSpace(string(number)) == fmt.Sprintf("%d:%d", unix.Major(uint64(st.Dev)),
				unix.Minor(uint64(st.Dev))) {
			device = func(d string) bool { return d == filepath.Base(at) }
		}
	}
	synced := 0
	for _, e := range rec.Events {
		d := recording.DetailOf[recording.ThreadDetail](e)
		if e.Kind != recording.KindBlocked || e.Subject != n.Address || d.Syscall != "fdatasync" &&
			d.Syscall != "fsync" {
			continue
		}
		synced++
		if !strings.HasPrefix(d.File, "appendonly.aof") || !strings.HasSuffix(d.File, ".aof") || !device(d.Device) {
			t.Errorf("a sync of %q on %q", d.File, d.Device)
		}
	}
	if synced == 0 {
		t.Skip("the disk is too fast here: no sync took long enough to be reported")
	}
}

// blockDevices are the directories of /sys that say which they are.
func blockDevices(t *testing.T) []string {
	t.Helper()
	list, err := filepath.Glob("/sys/class/block/*")
	if err != nil {
		t.Fatal(err)
	}
	return list
}
