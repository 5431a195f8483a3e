//go:build linux

package tap

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

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

// blockDevices are the directories of /sys that say which they are.
func blockDevices(t *testing.T) []string {
	t.Helper()
	list, err := filepath.Glob("/sys/class/block/*")
	if err != nil {
		t.Fatal(err)
	}
	return list
}
