//go:build linux

package tap

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"slowpath/internal/clock"
	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/recording"
	"slowpath/internal/source/host"
	"slowpath/internal/stats"
)

// BenchmarkCost: what the tap takes from a server at saturation. The server has one CPU, the load another;
// the programs are attached and detached in turns, a quarter of a second each, while the load goes on, so that what
// else the machine does hits both alike. Reported are medians over the pairs: the throughput with the programs to that
// without, and the same of the server's CPU time per command. The same with programs that do nothing is what hooks cost
// by themselves.
func BenchmarkCost(b *testing.B) {
	needs.Real(b, needs.BPF, needs.RedisServer, needs.Benchmark, needs.QuietCPU, needs.CPUs(2))
	for _, pipeline := range []int{1, 16} {
		for name, sample := range map[string]int{"default": 0, "all": 1000} {
			b.Run(fmt.Sprintf("P%d/%s", pipeline, name), func(b *testing.B) { costOf(b, pipeline, sample) })
		}
		b.Run(fmt.Sprintf("P%d/empty", pipeline), func(b *testing.B) {
			port, pid := startServerPID(b, "127.0.0.1")
			cost(b, pipeline, port, pid, emptyPrograms(b))
		})
	}
}

// pin keeps a process on one CPU.
func pin(b *testing.B, pid, cpu int) {
	b.Helper()
	var set unix.CPUSet
	set.Set(cpu)
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		b.Fatal(err)
	}
	for _, task := range tasks {
		tid, _ := strconv.Atoi(task.Name())
		if err := unix.SchedSetaffinity(tid, &set); err != nil {
			b.Fatal(err)
		}
	}
}

// onCPU is how many nanoseconds a thread has run.
func onCPU(b *testing.B, tid int) int64 {
	body, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", tid))
	if err != nil {
		b.Skip("needs schedstat: ", err)
	}
	var ran int64
	if _, err := fmt.Sscan(string(body), &ran); err != nil {
		b.Fatal(err)
	}
	return ran
}

// processed asks a server how many commands it has served.
func processed(b *testing.B, c net.Conn) int64 {
	if _, err := io.WriteString(c, "INFO stats\r\n"); err != nil {
		b.Fatal(err)
	}
	reply := make([]byte, 1<<16)
	for n := 0; ; {
		m, err := c.Read(reply[n:])
		if err != nil {
			b.Fatal(err)
		}
		n += m
		if at := bytes.Index(reply[:n], []byte("total_commands_processed:")); at >= 0 && bytes.HasSuffix(reply[:n],
			[]byte("\r\n")) {
			var count int64
			if _, err := fmt.Sscanf(string(reply[at:n]), "total_commands_processed:%d", &count); err != nil {
				b.Fatal(err)
			}
			return count
		}
	}
}

// nowhere is a sink that keeps nothing.
type nowhere struct{ recording.Sink }

func (nowhere) Call(recording.Call, ...recording.Segment) {}

func (nowhere) Event(recording.Event) {}

func (nowhere) Sample(recording.Sample) {}

func (nowhere) ConnUse(string, recording.ConnUse) {}

func (nowhere) Histogram(recording.Histogram) {}

// emptyPrograms are attached to the hooks of each call and do nothing: what they cost is what the kernel takes to come
// to a program, below which none can be.
func emptyPrograms(b *testing.B) *loaded {
	l := &loaded{coll: &ebpf.Collection{Programs: map[string]*ebpf.Program{}}}
	for _, place := range []string{
		"sock_recv_length", "sock_send_length", "sk_data_ready", "sched_switch",
		"sched_waking",
	} {
		p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
			Name: "empty", Type: ebpf.Tracing,
			AttachType: ebpf.AttachTraceRawTp, AttachTo: place, License: "Dual MIT/GPL",
			Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
		})
		if err != nil {
			b.Skip("needs the tracepoints of new kernels: ", err)
		}
		l.coll.Programs[place] = p
		l.wanted = append(l.wanted, place)
	}
	b.Cleanup(func() { l.Close() })
	if err := l.attach(); err != nil {
		b.Fatal(err)
	}
	return l
}

func costOf(b *testing.B, pipeline, sample int) {
	port, pid := startServerPID(b, "127.0.0.1")
	node := Node{Address: fmt.Sprintf("127.0.0.1:%d", port), Remote: netip.AddrPortFrom(netip.AddrFrom4([4]byte{
		127, 0,
		0, 1,
	}), uint16(port)), PID: pid}
	tap, err := Open(Options{
		Clock: clock.New(), Files: host.Root{}, Sink: nowhere{}, Nodes: []Node{node},
		SamplePerSecond: sample,
	})
	attached(b, err)
	defer tap.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go tap.Run(ctx) //nolint:errcheck // what it would say, the attaching says
	cost(b, pipeline, port, pid, tap.kernel)
}

func cost(b *testing.B, pipeline, port, pid int, programs *loaded) {
	pin(b, pid, 0)
	ask, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		b.Fatal(err)
	}
	defer ask.Close()
	// with connections of its own: the programs know nothing of what passed while they were detached
	window := func() (rate, perCall float64) {
		load := exec.Command("redis-benchmark", "-p", strconv.Itoa(port), "-c", "50", "-P", strconv.Itoa(pipeline),
			"-t", "get",
			"-n", "1000000000", "-q")
		if err := load.Start(); err != nil {
			b.Fatal(err)
		}
		defer func() { _ = load.Process.Kill(); _ = load.Wait() }()
		pin(b, load.Process.Pid, 1)
		await.Pass(150 * time.Millisecond)
		n0, cpu0, t0 := processed(b, ask), onCPU(b, pid), time.Now()
		await.Pass(300 * time.Millisecond)
		n1, cpu1, t1 := processed(b, ask), onCPU(b, pid), time.Now()
		return float64(n1-n0) / t1.Sub(t0).Seconds(), float64(cpu1-cpu0) / float64(n1-n0)
	}
	var rates, cpus, offRate, offCPU []float64
	b.ResetTimer()
	for range b.N {
		onRate, onPer := window()
		if err := programs.detach(); err != nil {
			b.Fatal(err)
		}
		rate, per := window()
		if err := programs.attach(); err != nil {
			b.Fatal(err)
		}
		rates, cpus = append(rates, onRate/rate), append(cpus, onPer/per)
		offRate, offCPU = append(offRate, rate), append(offCPU, per)
	}
	b.StopTimer()
	for name, list := range map[string][]float64{
		"x-throughput": rates, "x-cpu": cpus, "calls/s": offRate,
		"ns/call": offCPU,
	} {
		slices.Sort(list)
		b.ReportMetric(stats.MedianUpper(list), name)
		if name[0] == 'x' {
			b.ReportMetric(stats.Quantile(list, 0.25), name+"-q1")
			b.ReportMetric(stats.Quantile(list, 0.75), name+"-q3")
		}
	}
}

// BenchmarkHooks: what the programs add to one call and its reply, at both ends together: one thread plays both, so
// that no scheduling comes between. The least of many short runs is taken, with the programs and without: it knows
// nothing of what else the machine does.
func BenchmarkHooks(b *testing.B) {
	needs.Real(b, needs.BPF, needs.QuietCPU)
	for _, pipeline := range []int{1, 16} {
		b.Run(fmt.Sprintf("P%d", pipeline), func(b *testing.B) { added(b, pipeline, nil) })
	}
	b.Run("left-out", func(b *testing.B) { added(b, 1, leaveOut) })
	b.Run("empty", func(b *testing.B) {
		addedBy(b, 1, func(int) (*loaded, func(int)) { return emptyPrograms(b), func(int) {} })
	})
}

// leaveOut has the programs leave out the connections from a port.
func leaveOut(b *testing.B, k *loaded, port int) {
	if err := k.coll.Maps[kernelMapPorts].Put(uint32(port), kernelPortUsePORT_LEFT_OUT); err != nil {
		b.Fatal(err)
	}
}

// added measures the programs of the tap. onConn is told of each connection by the port of its client.
func added(b *testing.B, pipeline int, onConn func(b *testing.B, k *loaded, port int)) {
	addedBy(b, pipeline, func(port int) (*loaded, func(int)) {
		k, err := loadWith(constants{"slow_ns": uint64(time.Hour)})
		attached(b, err)
		b.Cleanup(func() { k.Close() })
		watchPort(b, k, port)
		return k, func(port int) {
			if onConn != nil {
				onConn(b, k, port)
			}
		}
	})
}

func addedBy(b *testing.B, pipeline int, programs func(port int) (*loaded, func(port int))) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	k, onConn := programs(port)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	request := bytes.Repeat([]byte("*2\r\n$3\r\nGET\r\n$16\r\nkey:__rand_int__\r\n"), pipeline)
	reply := bytes.Repeat([]byte("$3\r\nxxx\r\n"), pipeline)
	buf := make([]byte, 1<<14)
	run := func() (least time.Duration) {
		client, server := ends(b, l)
		defer unix.Close(client)
		defer unix.Close(server)
		peer, err := unix.Getpeername(server)
		if err != nil {
			b.Fatal(err)
		}
		onConn(peer.(*unix.SockaddrInet4).Port)
		call := func() {
			send(b, client, request)
			receive(b, server, buf, len(request))
			send(b, server, reply)
			receive(b, client, buf, len(reply))
		}
		for range 200 {
			call()
		}
		least = time.Hour
		for range 200 {
			t0 := time.Now()
			for range 50 {
				call()
			}
			least = min(least, time.Since(t0)/50)
		}
		return least
	}
	var on, off []time.Duration
	b.ResetTimer()
	for range b.N {
		on = append(on, run())
		if err := k.detach(); err != nil {
			b.Fatal(err)
		}
		off = append(off, run())
		if err := k.attach(); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	slices.Sort(on)
	slices.Sort(off)
	b.ReportMetric(float64(off[0]), "ns-without")
	b.ReportMetric(float64(on[0]-off[0]), "ns-added")
	b.ReportMetric(float64(on[len(on)/4]-off[len(off)/4]), "ns-added-q1")
}

// ends makes a connection and gives both ends as blocking descriptors.
func ends(b *testing.B, l net.Listener) (client, server int) {
	c, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	s, err := l.Accept()
	if err != nil {
		b.Fatal(err)
	}
	fd := func(c net.Conn) int {
		defer c.Close()
		f, err := c.(*net.TCPConn).File()
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		n, err := unix.Dup(int(f.Fd()))
		if err != nil {
			b.Fatal(err)
		}
		if err := unix.SetNonblock(n, false); err != nil {
			b.Fatal(err)
		}
		if err := unix.SetsockoptInt(n, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
			b.Fatal(err)
		}
		return n
	}
	return fd(c), fd(s)
}

func send(b *testing.B, fd int, p []byte) {
	if n, _, errno := unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&p[0])),
		uintptr(len(p))); errno != 0 || int(n) != len(p) {
		b.Fatal(n, errno)
	}
}

func receive(b *testing.B, fd int, buf []byte, want int) {
	if n, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&buf[0])),
		uintptr(len(buf))); errno != 0 || int(n) != want {
		b.Fatal(n, errno)
	}
}
