//go:build linux

package tap

import (
	"errors"
	"fmt"
	"io"
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
    print("all have answered", flush=True)
    time.sleep(0.002)
`

// snapshotWatch counts snapshots, and the calls of one node.
type snapshotWatch struct {
	*recording.Recording
	snapshotReader
	node         string
	looks, calls atomic.Int64
}

func (w *snapshotWatch) Call(c recording.Call, segs ...recording.Segment) {
	w.Recording.Call(c, segs...)
	if c.Node == w.node {
		w.calls.Add(1)
	}
}

func (w *snapshotWatch) read(take func(*kernelConnSnapshot)) (int64, error) {
	w.looks.Add(1)
	return w.snapshotReader.read(take)
}

func (w *snapshotWatch) Close() error { return w.snapshotReader.Close() }

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
			p := watchStops(t, nodes, exec.Command("python3", args...))
			checked(t, p, tape, snapshotsMade{how.together, nodes[2].Address}, checkSnapshots)
		})
	}
}

// watchStops watches a client of servers whose last is stopped now and then, until there were snapshots in some stops.
func watchStops(t *testing.T, nodes []Node, client *exec.Cmd) *taper {
	t.Helper()
	p := openTaped(t, Options{Nodes: nodes})
	if p.snapshots == nil {
		t.Skip("the kernel has no iterator over open files: ", p.Blind())
	}
	slow := nodes[len(nodes)-1]
	w := &snapshotWatch{Recording: p.rec, snapshotReader: p.snapshots, node: slow.Address}
	p.recorder.Sink, p.snapshots = w, w
	p.start(t)
	said, err := client.StdoutPipe()
	if err == nil {
		err = client.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Process.Kill(); _ = client.Wait() }()
	if _, err := said.Read(make([]byte, 1)); err != nil { // it calls: each stop makes one of its calls slow
		t.Fatal(err)
	}
	go io.Copy(io.Discard, said) //nolint:errcheck // until the client ends
	looked := int64(0)           // stops in which a snapshot was taken
	await.Until(t, "snapshots are taken while the server is stopped", func() bool {
		calls := w.calls.Load()
		err := syscall.Kill(slow.PID, syscall.SIGSTOP)
		await.Pass(20 * time.Millisecond) // by then the client waits
		before := w.looks.Load()
		await.Pass(60 * time.Millisecond) // the fault itself
		if w.looks.Load() > before {
			looked++
		}
		if err := errors.Join(err, syscall.Kill(slow.PID, syscall.SIGCONT)); err != nil {
			t.Fatal(err)
		}
		await.Until(t, "the slow call is recorded", func() bool { return w.calls.Load() > calls })
		return looked >= 3
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
