//go:build linux

package tap

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"slowpath/internal/clock"
	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/recording"
	"slowpath/internal/source/host"
)

// cpuGroup is a cgroup with a CPU quota in cores; what is put into it must have ended before the test does.
func cpuGroup(t *testing.T, name string, cores float64) (dir string, put func(pid int)) {
	t.Helper()
	const root, period = "/sys/fs/cgroup/cpu", 100_000
	dir = fmt.Sprintf("%s/slowpath-test-%s-%d", root, name, os.Getpid())
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { await.Until(t, "the cgroup is empty", func() bool { return os.Remove(dir) == nil }) })
	write := func(file, text string) {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("cpu.cfs_quota_us", fmt.Sprint(int(cores*period)))
	return dir, func(pid int) { write("cgroup.procs", fmt.Sprint(pid)) }
}

func TestRealThrottledByCgroup(t *testing.T) {
	needs.Real(t, needs.BPF, needs.CgroupV1CPU, needs.RedisServer, needs.RedisCLI, needs.Benchmark)
	for _, side := range []string{recording.Server, recording.Client} {
		t.Run(side, func(t *testing.T) {
			dir, put := cpuGroup(t, side, 0.02) // on a busy machine, too, both get more
			n := serverAt(t, onePort(t, 1))
			p := watchTaped(t, Options{Nodes: []Node{n}, Quota: (&host.Quotas{FS: host.Root{}, Clock: clock.New()}).Of})
			of := []string{"-c", "10", "-n", "100000000", "-t", "set", "-q"}
			if side == recording.Server {
				of = serverBound
			}
			// As much as both can do, for two seconds; it is ended by timeout.
			load := exec.Command("sh", append([]string{
				"-c", `read go; exec timeout 2 redis-benchmark -p "$0" "$@"`,
				fmt.Sprint(n.Port),
			}, of...)...)
			held, err := load.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := load.Start(); err != nil {
				t.Fatal(err)
			}
			if side == recording.Client {
				put(load.Process.Pid) // before it has children
			} else {
				put(n.PID)
			}
			held.Close()
			_ = load.Wait()
			p.stop(t)
			want := fmt.Sprintf("CPU quota of /%s (0.02 cores)", filepath.Base(dir))
			checked(t, p, "throttled-"+side, throttledMade{side, want}, checkThrottled)
		})
	}
}
