//go:build linux

package tap

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/recording"
)

// threeServers is a client that asks three servers, again and again: all at once, or one after the other. It is a
// process of its own: slowpath's own calls are not in snapshots.
const threeServers = `
import socket, sys, time
together = sys.argv[1] == "together"
conns = [socket.create_connection(a.split(":")) for a in sys.argv[2:]]
for c in conns:
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
while True:
    for c in conns:
        c.sendall(b"*1\r\n$4\r\nPING\r\n")
        if not together:
            c.recv(64)
    for c in conns:
        if together:
            c.recv(64)
    time.sleep(0.002)
`

// snapshotEvents passes on each snapshot that is recorded.
type snapshotEvents struct {
	*recording.Recording
	n atomic.Int64
}

func (b *snapshotEvents) Event(e recording.Event) {
	b.Recording.Event(e)
	if e.Kind == recording.KindOtherNodes {
		b.n.Add(1)
	}
}

func TestRealSnapshots(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer, needs.Python)
	script := filepath.Join(t.TempDir(), "client.py")
	if err := os.WriteFile(script, []byte(threeServers), 0o600); err != nil {
		t.Fatal(err)
	}
	for tape, how := range snapshotTapes {
		t.Run(tape, func(t *testing.T) {
			var nodes []Node
			args := []string{script, "one after the other"}
			if how.together {
				args[1] = "together"
			}
			for range 3 {
				n := serverAt(t, onePort(t, how.host))
				nodes, args = append(nodes, n), append(args, n.Address)
			}
			p := watchTwice(t, nodes, exec.Command("python3", args...))
			checked(t, p, tape, snapshotsMade{how.together, nodes[2].Address}, checkSnapshots)
		})
	}
}

// watchTwice watches a client of servers whose last is stopped now and then, until there are snapshots of two stops at
// least.
func watchTwice(t *testing.T, nodes []Node, client *exec.Cmd) *taper {
	t.Helper()
	p := openTaped(t, Options{Nodes: nodes})
	if p.snapshots == nil {
		t.Skip("the kernel has no iterator over open files: ", p.Blind())
	}
	seen := &snapshotEvents{Recording: p.rec}
	p.recorder.Sink = seen
	p.start(t)
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Process.Kill(); _ = client.Wait() }()
	slow := nodes[len(nodes)-1].PID
	await.Until(t, "snapshots are recorded", func() bool {
		err := syscall.Kill(slow, syscall.SIGSTOP)
		await.Pass(70 * time.Millisecond) // the fault itself
		if err := errors.Join(err, syscall.Kill(slow, syscall.SIGCONT)); err != nil {
			t.Fatal(err)
		}
		return seen.n.Load() >= 4
	})
	p.stop(t)
	return p
}

// BenchmarkSnapshot: one snapshot of connections of clients, and the CPU time that it takes.
func BenchmarkSnapshot(b *testing.B) {
	needs.Real(b, needs.BPF, needs.RedisServer, needs.QuietCPU)
	for _, conns := range []int{10, 1000} {
		b.Run(fmt.Sprint(conns), func(b *testing.B) {
			port := startServer(b)
			r := openRaw(b, port, constants{})
			snapshots, err := openSnapshots(r.coll)
			if err != nil || snapshots == nil {
				b.Skip("needs an iterator over open files: ", err)
			}
			defer snapshots.Close() //nolint:errcheck // the benchmark is over
			for range conns {
				c, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", port))
				if err != nil {
					b.Fatal(err)
				}
				defer c.Close()
				if _, err := c.Write([]byte(command("PING"))); err != nil {
					b.Fatal(err)
				}
				if _, err := c.Read(make([]byte, 64)); err != nil {
					b.Fatal(err)
				}
			}
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			n := 0
			start := clock.ThreadCPU()
			for b.Loop() {
				n = 0
				if _, err := snapshots.read(func(*kernelConnSnapshot) { n++ }); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(clock.ThreadCPU()-start)/float64(b.N), "cpu-ns/snapshot")
			b.ReportMetric(float64(n), "seen/snapshot")
		})
	}
}
