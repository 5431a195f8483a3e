package host

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
	"slowpath/internal/source/hostfs"
)

// TestNeighboursThatAreChildren: a child of the server is told apart from another server's, which has the same name.
func TestNeighboursThatAreChildren(t *testing.T) {
	root := t.TempDir()
	write := func(pid, parent int, name string, ticks int64) {
		dir := filepath.Join(root, "proc", fmt.Sprint(pid))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		stat := fmt.Sprintf("%d (redis-server) R %d 1 1 0 -1 0 0 0 0 0 %d 0 0 0 20 0 1 0 5 "+
			"0 0 0 0 0 0 0 0 0 0 0 0 0 0 "+
			"0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n", pid, parent, ticks)
		for file, text := range map[string]string{"stat": stat, "cmdline": name + "\x00"} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	sink := &memory{}
	w := &watch{
		Options: Options{
			FS: Root{Root: hostfs.Root{Dir: root}}, Sink: sink, Node: "server", Process: Process{PID: 10},
			Clock: clock.New(),
		},
		cpuOf: map[int]processCPU{}, callers: map[int]caller{}, last: map[string]float64{}, lastScan: 1,
	}
	write(10, 1, "redis-server *:6379", 100)
	write(11, 10, "redis-rdb-bgsave *:6379", 1<<40)
	write(12, 20, "redis-rdb-bgsave *:6380", 1<<40)
	w.findNeighbours()
	got := map[int]bool{}
	for _, e := range sink.events {
		for _, n := range recording.DetailOf[[]recording.Neighbour](e) {
			if n.Command != "redis-rdb-bgsave" {
				t.Errorf("%+v", n)
			}
			got[n.PID] = n.Child
		}
	}
	if len(got) != 2 || !got[11] || got[12] {
		t.Errorf("children: %v, want 11 of 11 and 12", got)
	}
}
