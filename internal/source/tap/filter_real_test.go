//go:build linux

package tap

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/recording"
)

// named is redis-cli under another name.
func named(t *testing.T, name string) string {
	t.Helper()
	bin, err := exec.LookPath("redis-cli")
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), name)
	if err := os.Symlink(bin, link); err != nil {
		t.Fatal(err)
	}
	return link
}

func TestRealProcessFilter(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer, needs.RedisCLI)
	n := serverAt(t, onePort(t, 1), "--enable-debug-command", "yes")
	port := fmt.Sprint(n.Port)
	made := filterMade{Server: n.PID}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	for _, name := range []string{"checkout", "billing"} {
		c := exec.CommandContext(ctx, named(t, name), "-p", port, "-r", "-1", "-i", "0.003", "GET", "key")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		if name == "checkout" {
			made.Checkout = c.Process.Pid
		}
		all.Go(func() { _ = c.Wait() })
	}
	p := watchTaped(t, Options{Nodes: []Node{n}, Processes: ProcessFilter{Comm: "checkout"}})
	for range 6 {
		if out, err := exec.CommandContext(ctx, "redis-cli", "-p", port, "DEBUG", "SLEEP",
			"0.06").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	await.Pass(50 * time.Millisecond) // those that waited for the last come back
	p.stop(t)
	for _, s := range p.rec.Snapshots {
		if s.Name == recording.SnapshotWaits && s.Subject != recording.ProcessPrefix+itoa(made.Checkout) {
			t.Errorf("what the threads of %s waited for is recorded, too", s.Subject)
		}
	}
	checked(t, p, "filter", made, func(t *testing.T, rec *recording.Recording, made filterMade) {
		t.Helper()
		checkFilter(t, rec, made, "comm")
	})
}
