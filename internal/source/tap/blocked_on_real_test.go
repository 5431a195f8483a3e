//go:build linux

package tap

import (
	"fmt"
	"io"
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

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/recording"
)

// TestBlockedOnFile: a server that syncs its append-only file after each write is blocked on that file, and on the
// device that has it.
func TestBlockedOnFile(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer, needs.RedisCLI)
	n := serverAt(t, onePort(t, 1), "--appendonly", "yes", "--appendfsync", "always")
	w := watchTaped(t, Options{Nodes: []Node{n}, MinWork: 10 * time.Microsecond})
	if out, err := exec.Command("redis-cli", "-p", strconv.Itoa(n.Port), "-r", "300", "SET", "key",
		"value").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	w.stop(t)
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
	for _, e := range w.rec.Events {
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

// TestBlockedOnPipe: a server that logs to a FIFO which is not read sleeps there, and not for want of work. Who reads
// it again is known.
func TestBlockedOnPipe(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer)
	fifo := filepath.Join(t.TempDir(), "log")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	n := serverAt(t, onePort(t, 1), "--logfile", fifo, "--loglevel", "verbose")
	read := func() {
		_ = log.SetReadDeadline(time.Now().Add(time.Millisecond))
		_, _ = io.Copy(io.Discard, log)
	}
	w := watchTaped(t, Options{Nodes: []Node{n}, MinWork: 10 * time.Microsecond})
	ask := func() {
		c, err := net.Dial("tcp", n.Address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, _ = fmt.Fprint(c, "PING\r\n") // it is not answered while the server sleeps
	}
	await.Until(t, "the server writes to a full pipe", func() bool {
		ask()
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", n.PID))
		return strings.HasPrefix(string(line), itoa(unix.SYS_WRITE)+" ")
	})
	await.Pass(20 * time.Millisecond)
	await.Until(t, "it answers again", func() bool {
		read()
		c, err := net.DialTimeout("tcp", n.Address, time.Second)
		if err != nil {
			return false
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(100 * time.Millisecond))
		_, _ = fmt.Fprint(c, "PING\r\n")
		_, err = c.Read(make([]byte, 7))
		return err == nil
	})
	w.stop(t)
	for _, e := range w.rec.Events {
		d := recording.DetailOf[recording.ThreadDetail](e)
		if e.Kind == recording.KindBlocked && d.Syscall == "write" && e.DurationNs >= int64(20*time.Millisecond) {
			if d.Other != "the FIFO log" || d.By == nil || d.By.PID != os.Getpid() {
				t.Errorf("it is %q, read by %+v", d.Other, d.By)
			}
			return
		}
	}
	t.Error("nobody saw the server sleep")
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
