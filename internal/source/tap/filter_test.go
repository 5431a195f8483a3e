//go:build linux

package tap

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"slowpath/internal/recording"
)

func TestInContainer(t *testing.T) {
	const id = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	docker, v1 := "0::/system.slice/docker-"+id+".scope\n",
		"12:cpu,cpuacct:/kubepods/burstable/pod7/"+id+"\n1:name=systemd:/\n0::/\n"
	for _, c := range []struct {
		groups, want string
		in           bool
	}{
		{docker, id, true},
		{docker, "0123", true},
		{docker, "docker-0123", true},
		{docker, "123456", false},
		{docker, "system.slice", true},
		{v1, "012345678", true},
		{v1, "pod7", true},
		{v1, "burstable/pod7", true},
		{v1, "cpuacct", false},
		{v1, "cdef", false},
		{"", "a", false},
		{"rubbish", "rubbish", false},
	} {
		if got := inContainer([]byte(c.groups), c.want); got != c.in {
			t.Errorf("%q in %q: %v", c.want, c.groups, got)
		}
	}
	for groups, want := range map[string]string{
		docker: "/system.slice/docker-" + id + ".scope",
		v1:     "/kubepods/burstable/pod7/" + id, "0::/\n": "no container", "": "no container",
	} {
		if got := container([]byte(groups)); got != want {
			t.Errorf("%q: %q, want %q", groups, got, want)
		}
	}
}

// named is redis-cli under another name.
func named(t *testing.T, name string) string {
	t.Helper()
	bin, err := exec.LookPath("redis-cli")
	if err != nil {
		t.Skip("needs redis-cli")
	}
	link := filepath.Join(t.TempDir(), name)
	if err := os.Symlink(bin, link); err != nil {
		t.Fatal(err)
	}
	return link
}

// TestProcessFilter: only calls of the selected processes are passed on; what they waited for is recorded whichever
// process did it; and the rest
// is counted.
func TestProcessFilter(t *testing.T) {
	n := serverAt(t, onePort(t, 1), "--enable-debug-command", "yes")
	checkout, billing := named(t, "checkout"), named(t, "billing")
	port := fmt.Sprint(n.Port)
	for name, w := range map[string]func(first int) (ProcessFilter, string){
		"comm": func(int) (ProcessFilter, string) { return ProcessFilter{Comm: "checkout"}, "checkout[" },
		"pid": func(pid int) (ProcessFilter, string) {
			return ProcessFilter{PID: pid}, fmt.Sprintf("checkout[%d]", pid)
		},
		"server": func(int) (ProcessFilter, string) { return ProcessFilter{PID: n.PID}, "" },
		"both hold": func(pid int) (ProcessFilter, string) {
			return ProcessFilter{PID: pid, Comm: "billing"},
				"nobody"
		},
		"nobody": func(int) (ProcessFilter, string) { return ProcessFilter{Container: "no-such-container"}, "nobody" },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			var all sync.WaitGroup
			defer all.Wait()
			defer cancel()
			first := 0
			for _, bin := range []string{checkout, billing} {
				c := exec.CommandContext(ctx, bin, "-p", port, "-r", "-1", "-i", "0.003", "GET", "key")
				if err := c.Start(); err != nil {
					t.Fatal(err)
				}
				if first == 0 {
					first = c.Process.Pid
				}
				all.Go(func() { _ = c.Wait() })
			}
			only, prefix := w(first)
			stop := runTap(t, Options{Nodes: []Node{n}, Processes: only})
			for range 6 {
				if out, err := exec.CommandContext(ctx, "redis-cli", "-p", port, "DEBUG", "SLEEP",
					"0.06").CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
			time.Sleep(50 * time.Millisecond) // those that waited for the last come back
			rec := stop()
			cancel()

			summary, ok := recording.SelectedCallsOf(rec.Meta)
			if !ok || summary.Matched != len(rec.Calls) || summary.Only != only.String() {
				t.Errorf("%d calls, summary %+v (%v)", len(rec.Calls), summary, ok)
			}
			waited := 0
			for _, c := range rec.Calls {
				if !strings.HasPrefix(c.Client, prefix) {
					t.Errorf("a call of %s", c.Client)
				}
				for _, s := range rec.SegmentsOf(c.ID) {
					if c.Op == "GET" && strings.Contains(s.Culprit, "DEBUG SLEEP from") && strings.Contains(s.Culprit,
						"redis-cli[") {
						waited++
						break
					}
				}
			}
			switch prefix {
			case "nobody":
				if len(rec.Calls) != 0 || summary.Others == 0 || summary.Calls != 0 || len(summary.Seen) == 0 {
					t.Errorf("%d calls, summary %+v", len(rec.Calls), summary)
				}
			case "":
				if waited == 0 || summary.Others+summary.Unknown != 0 {
					t.Errorf("%d calls waited, summary %+v", waited, summary)
				}
			default:
				if waited == 0 || summary.Others == 0 || summary.Calls < int64(summary.Matched) ||
					len(summary.Seen) != 0 {
					t.Errorf("%d calls waited, summary %+v", waited, summary)
				}
			}
		})
	}
}
