//go:build linux

package tap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
	"slowpath/internal/source/host"
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

// concurrent counts the snapshots that were recorded.
type concurrentEvents struct {
	*recording.Recording
	n atomic.Int64
}

func (b *concurrentEvents) Event(e recording.Event) {
	if e.Kind == recording.KindOtherNodes {
		b.n.Add(1)
	}
	b.Recording.Event(e)
}

// TestSnapshots: calls that wait for a server which is stopped again and again are in snapshots, with what else their
// process had asked.
func TestSnapshots(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("needs python3")
	}
	script := filepath.Join(t.TempDir(), "client.py")
	if err := os.WriteFile(script, []byte(threeServers), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		how  string
		host byte // at 127.0.0.1 the servers' ends parse for the clients'
	}{{"together", 1}, {"one after the other", 1}, {"together", 2}, {"one after the other", 2}} {
		t.Run(fmt.Sprint(tt.how, " at 127.0.0.", tt.host), func(t *testing.T) {
			var nodes []Node
			args := []string{script, tt.how}
			for range 3 {
				n := serverAt(t, onePort(t, tt.host))
				nodes, args = append(nodes, n), append(args, n.Address)
			}
			checkLooks(t, snapshotsOf(t, nodes, exec.Command(python, args...)), nodes[2], tt.how == "together")
		})
	}
}

// checkLooks: exchanges with the other two servers overlap the send of a slow call where all are asked at once, and
// never where the reply of one comes before the next is asked.
func checkLooks(t *testing.T, seen *recording.Recording, slow Node, together bool) {
	t.Helper()
	overlapping, most := 0, 0
	for _, e := range seen.Events {
		if e.Kind != recording.KindOtherNodes || e.Subject != slow.Address {
			continue // on a busy machine another one can be slow, too
		}
		d := recording.DetailOf[recording.OtherNodesDetail](e)
		if d.Op != "PING" || d.Client == "" || d.Process == "" || e.DurationNs < int64(DefaultSlow)/2 {
			t.Errorf("%+v %+v", e, d)
		}
		with := 0
		for _, o := range d.Others {
			if !o.Waiting && o.SentAfterNs < e.DurationNs && o.SentAfterNs+o.TookNs > 0 {
				with++
			}
		}
		overlapping, most = overlapping+with, max(most, with)
	}
	if together && most != 2 || !together && overlapping != 0 {
		t.Errorf("%d exchanges overlap the send of the slow call, up to %d in one snapshot", overlapping, most)
	}
}

// snapshotsOf runs a client of servers whose last is stopped now and then, until there are enough snapshots of it.
func snapshotsOf(t *testing.T, nodes []Node, client *exec.Cmd) *recording.Recording {
	t.Helper()
	seen := &concurrentEvents{Recording: recording.New()}
	source, err := Open(Options{Clock: clock.New(), Files: host.Root{}, Sink: seen, Nodes: nodes})
	needs(t, err)
	if source.snapshots == nil {
		t.Skip("needs an iterator over open files: ", source.Blind())
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- source.Run(ctx) }()
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Process.Kill(); _ = client.Wait() }()
	slow := nodes[len(nodes)-1].PID
	for deadline := time.Now().Add(time.Minute); seen.n.Load() < 8; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nothing was looked at")
		}
		err := syscall.Kill(slow, syscall.SIGSTOP)
		time.Sleep(70 * time.Millisecond) // the fault itself
		if err := errors.Join(err, syscall.Kill(slow, syscall.SIGCONT)); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if err := errors.Join(<-ended, source.Close()); err != nil {
		t.Error(err)
	}
	return seen.Recording
}

// TestConcurrent: of several calls to a node that wait, the one that was sent last counts; of several connections to
// another node, the last exchange.
func TestConcurrent(t *testing.T) {
	rec := recording.New()
	a, b, x := netip.MustParseAddrPort("10.0.0.1:6379"), netip.MustParseAddrPort("10.0.0.2:6379"),
		netip.MustParseAddrPort("10.0.0.3:6379")
	client := clientEnd{AddrPort: netip.MustParseAddrPort("10.0.0.9:1000")}
	k := newRecorder(Options{
		Clock: clock.New(), Sink: rec, Slow: 5 * time.Millisecond,
		Nodes: []Node{{Address: "a", Remote: a}, {Address: "b", Remote: b}, {Address: "x", Remote: x}},
	},
		func(ns uint64) int64 { return int64(ns) }, func(uint16) nodeOp { return nodeOp{name: "GET"} })
	k.addClient(client, process{7, "shop"})
	const ms = int64(1e6)
	take := func(at int64, ends ...kernelConnSnapshot) {
		v := &snapshot{at: at, exchanges: map[processNode]exchange{}}
		for _, g := range ends {
			k.addExchange(v, &g)
		}
		k.snapshots.add(v)
	}
	end := func(server netip.AddrPort, tgid uint32, from, to int64, outstanding uint32) kernelConnSnapshot {
		return kernelConnSnapshot{
			From: uint64(from), To: uint64(to), Tgid: tgid, Outstanding: outstanding,
			Addr: kernelAddr{
				Role: roleClient, Lport: 1000, Rport: server.Port(), Laddr: client.Addr().As16(),
				Raddr: server.Addr().As16(),
			},
		}
	}
	take(120*ms, end(a, 7, 10*ms, 11*ms, 0), end(a, 7, 100*ms, 101*ms, 0), end(b, 7, 100*ms, 100*ms, 1),
		end(a, 8, 110*ms, 111*ms, 0), end(x, 7, 90*ms, 91*ms, 0))
	for _, from := range []int64{60, 100, 80, 116} { // the last was not slow yet
		k.addSlowCall(recording.Call{Node: "x", Op: "GET", Client: "shop[7]", StartNs: from * ms, EndNs: 150 * ms},
			client)
	}
	k.addSlowCall(recording.Call{Node: "x", Op: "GET", StartNs: 110 * ms, EndNs: 119 * ms}, client) // it had ended
	k.addSlowCall(recording.Call{Node: "x", Op: "GET", StartNs: 110 * ms, EndNs: 150 * ms},
		clientEnd{AddrPort: netip.MustParseAddrPort("10.0.0.9:2000")})
	k.emitConcurrent(120*ms + keepSnapshots)
	if len(rec.Events) != 0 {
		t.Errorf("booked too early: %+v", rec.Events)
	}
	k.emitConcurrent(121*ms + keepSnapshots)
	want := recording.Detail(recording.OtherNodesDetail{
		Op: "GET", Process: "shop[7]",
		Others: []recording.OtherNodeCall{{Node: "a", TookNs: ms}, {Node: "b", Waiting: true}},
	})
	if len(rec.Events) != 1 || rec.Events[0].TimeNs != 100*ms || rec.Events[0].DurationNs != 20*ms ||
		rec.Events[0].Subject != "x" || rec.Events[0].Detail != want {
		t.Errorf("%+v, want %s", rec.Events, want)
	}
	for now, wanted := range map[int64]bool{150*ms + snapshotAfter - 1: true, 150*ms + snapshotAfter: false} {
		if k.snapshots.wanted(now) != wanted {
			t.Errorf("snapshots are wanted at %d: %t", now, !wanted)
		}
	}
}

// BenchmarkSnapshot: one snapshot of connections of clients, and the CPU time that it takes.
func BenchmarkSnapshot(b *testing.B) {
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
			clk, n := clock.New(), 0
			start := clk.ThreadCPU()
			for b.Loop() {
				n = 0
				if err := snapshots.read(func(*kernelConnSnapshot) { n++ }); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(clk.ThreadCPU()-start)/float64(b.N), "cpu-ns/snapshot")
			b.ReportMetric(float64(n), "seen/snapshot")
		})
	}
}
