//go:build linux

package tap

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
	"slowpath/internal/source/host"
)

// cpuGroup is a cgroup with a CPU quota in cores; what is put into it must have ended before the test does.
func cpuGroup(t *testing.T, name string, cores float64) (dir string, put func(pid int)) {
	t.Helper()
	const root, period = "/sys/fs/cgroup/cpu", 100_000
	dir = fmt.Sprintf("%s/slowpath-test-%s-%d", root, name, os.Getpid())
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skip("needs cgroup v1 with the cpu controller, and root: ", err)
	}
	t.Cleanup(func() {
		for deadline := time.Now().Add(5 * time.Second); os.Remove(dir) != nil &&
			time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		}
	})
	write := func(file, text string) {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("cpu.cfs_quota_us", fmt.Sprint(int(cores*period)))
	return dir, func(pid int) { write("cgroup.procs", fmt.Sprint(pid)) }
}

// TestThrottledByCgroup: a wait for the quota names the cgroup and its quota, of servers and of clients, in the event
// and in the calls.
func TestThrottledByCgroup(t *testing.T) {
	for _, side := range []string{recording.Server, recording.Client} {
		t.Run(side, func(t *testing.T) {
			dir, put := cpuGroup(t, side, 0.02) // on a busy machine, too, both get more
			n := serverAt(t, onePort(t, 1))
			stop := runTap(t, Options{Nodes: []Node{n}, Quota: (&host.Quotas{FS: host.Root{}, Clock: clock.New()}).Of})
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
			rec := stop()

			want, events, named := fmt.Sprintf("CPU quota of /%s (0.02 cores)", filepath.Base(dir)), 0, 0
			for _, e := range rec.Events {
				if e.Kind != recording.KindThrottled {
					continue
				}
				if d := recording.DetailOf[recording.ThreadDetail](e); d.Holder() != want ||
					(side == recording.Client) != strings.HasPrefix(e.Subject, recording.ProcessPrefix) {
					t.Errorf("event of %s: %+v, want %s", e.Subject, d, want)
				}
				events++
			}
			for _, c := range rec.Calls {
				for _, s := range rec.SegmentsOf(c.ID) {
					if s.State == recording.Throttled && s.Culprit == want && s.Actor == side {
						named++
					}
				}
			}
			if events == 0 || named == 0 {
				t.Errorf("%d events, %d segments of calls name %s", events, named, want)
			}
		})
	}
}
