package host

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"

	"slowpath/internal/recording"
)

// slowDisk mounts a file system on a loop device on which processes of a blkio cgroup write a few times a second only.
func slowDisk(t *testing.T, writesPerSecond int) (mount, group string) {
	t.Helper()
	dir := t.TempDir()
	image := filepath.Join(dir, "disk")
	mount = filepath.Join(dir, "mnt")
	if err := os.Mkdir(mount, 0o755); err != nil {
		t.Fatal(err)
	}
	group = makeCgroup(t, "blkio", "slowpath-test-disk")
	sh(t, "truncate -s 64M %s && mkfs.ext4 -q -F %s", image, image)
	out, err := exec.Command("losetup", "--find", "--show", image).Output()
	if err != nil {
		t.Skipf("needs a loop device: %v", err)
	}
	device := strings.TrimSpace(string(out))
	t.Cleanup(func() { _ = exec.Command("losetup", "-d", device).Run() })
	if out, err := exec.Command("mount", device, mount).CombinedOutput(); err != nil {
		t.Skipf("needs to mount: %s", out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", mount).Run() })
	number, err := os.ReadFile(filepath.Join("/sys/block", filepath.Base(device), "dev"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, group+"/blkio.throttle.write_iops_device",
		strings.TrimSpace(string(number))+" "+strconv.Itoa(writesPerSecond))
	return mount, group
}

func TestBlockedInFdatasync(t *testing.T) {
	needs.Real(t, needs.Root, needs.RedisServer, needs.Benchmark)
	mount, group := slowDisk(t, 100)
	redis := startRedis(t, 22007, "--dir", mount, "--appendonly", "yes", "--appendfsync", "always")
	write(t, group+"/cgroup.procs", strconv.Itoa(redis.Process.Pid))
	start(t, "redis-benchmark", "-p", "22007", "-t", "set", "-n", "100000000", "-c", "2", "-q")
	sink := watchFor(t, redis.Process.Pid, 22007, func(sink *memory) {
		await.Until(t, "the server is blocked in fdatasync for half a second",
			func() bool { return blockedIn(sink)["fdatasync"] > 500*time.Millisecond })
	})
	show(t, sink)
	calls := blockedIn(sink)
	t.Log(calls)
	if calls["fdatasync"] < calls[""] {
		t.Errorf("blocked in %v, want most of it in fdatasync", calls)
	}
	if v, ok := sink.value("cgroup:/slowpath-test-disk", "io.write_iops_limit"); !ok || v != 100 {
		t.Errorf("io.write_iops_limit %v %v", v, ok)
	}
}

// blockedIn is for how long a process was blocked, by system call.
func blockedIn(sink *memory) map[string]time.Duration {
	calls := map[string]time.Duration{}
	for _, e := range sink.kind(recording.KindBlocked) {
		d := recording.DetailOf[recording.ThreadDetail](e)
		calls[d.Syscall] += time.Duration(float64(e.DurationNs) * d.Share)
	}
	return calls
}
