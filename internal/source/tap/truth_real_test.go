//go:build linux

package tap

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/cilium/ebpf/ringbuf"

	"slowpath/internal/clock"
	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
)

// startServer runs a real server of its own and gives its port.
func startServer(t testing.TB) int { return startServerAt(t, "127.0.0.1") }

func startServerAt(t testing.TB, ip string) int {
	t.Helper()
	port, _ := startServerPID(t, ip)
	return port
}

// startServerPID gives its process, too.
func startServerPID(t testing.TB, ip string) (port, pid int) {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
	if err != nil {
		t.Fatal(err)
	}
	port = l.Addr().(*net.TCPAddr).Port
	l.Close()
	cmd := exec.Command("redis-server", "--port", strconv.Itoa(port), "--bind", ip, "--protected-mode", "no",
		"--save", "",
		"--dir", t.TempDir(), "--enable-debug-command", "yes", "--maxclients", "20000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	await.Until(t, "the server listens", func() bool { return listensAt(net.JoinHostPort(ip, strconv.Itoa(port))) })
	serverPIDs.Store(port, cmd.Process.Pid)
	return port, cmd.Process.Pid
}

func listensAt(address string) bool {
	c, err := net.Dial("tcp", address)
	if err == nil {
		c.Close()
	}
	return err == nil
}

// serverPIDs are the processes of this package's servers by port.
var serverPIDs sync.Map

// atRest waits until all threads of a server sleep. What they sent last has then been reported, too: a client may have
// a reply before its server's thread has left the system call that sent it.
func atRest(t testing.TB, port int) {
	t.Helper()
	pid, ok := serverPIDs.Load(port)
	if !ok {
		t.Fatalf("no server of this test has port %d", port)
	}
	await.Until(t, "the server sleeps", func() bool { return asleepNow(pid.(int)) })
}

// asleepNow says whether all threads of a process sleep.
func asleepNow(pid int) bool {
	stats, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid)) // the pattern is well formed
	for _, name := range stats {
		b, err := os.ReadFile(name)
		if _, rest, ok := strings.Cut(string(b), ") "); err != nil || !ok || rest[0] != 'S' {
			return false
		}
	}
	return true
}

// attached skips where the tap cannot be, and fails where it should have been: a kernel that refuses the
// programs is a fault.
func attached(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, ErrPrivilege) || errors.Is(err, ErrNoHook) || errors.Is(err, ErrNoBTF) {
		t.Skip("needs the tap: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// raw is the programs without the recorder: every event as the kernel made it.
type raw struct {
	*loaded
	port   int
	ring   *ringbuf.Reader
	calls  []kernelCallEvent
	closes []kernelConnEvent
	stop   chan struct{}
	done   chan struct{}
}

// ringBytes among constants is the size of the ring buffer, a power of two.
const ringBytes = "ring_bytes"

// loadWith loads the programs with constants. Those that parse at both ends of all connections (strict_all) need all
// hooks.
func loadWith(c constants) (*loaded, error) {
	ring, large := c[ringBytes].(uint32)
	c = maps.Clone(c)
	delete(c, ringBytes)
	spec, err := specWith(c)
	if err != nil {
		return nil, err
	}
	if large {
		spec.Maps[kernelMapEvents].MaxEntries = ring
	}
	l, err := load(spec)
	if err != nil {
		return nil, err
	}
	if err := l.attach(); err != nil || c[kernelVarStrictAll] == nil {
		return l, err
	}
	return l, l.attachLate("") // all of them
}

func openRaw(t testing.TB, port int, c constants) *raw {
	t.Helper()
	l, err := loadWith(c)
	attached(t, err)
	watchPort(t, l, port)
	r := &raw{loaded: l, port: port, stop: make(chan struct{}), done: make(chan struct{})}
	if r.ring, err = ringbuf.NewReader(l.coll.Maps["events"]); err != nil {
		t.Fatal(err)
	}
	go r.read()
	return r
}

// watchPort has the programs watch a port of whatever process, at whatever address.
func watchPort(t testing.TB, l *loaded, port int) {
	t.Helper()
	err := l.coll.Maps[kernelMapPorts].Put(uint32(port), uint8(1))
	key := kernelNodeKey{Id: uint32(port), Net: anyNet}
	for _, ip := range []string{"127.0.0.1", "127.0.0.2", "::1"} {
		key.Addr = netip.MustParseAddr(ip).As16()
		err = errors.Join(err, l.coll.Maps[kernelMapNodes].Put(key, uint32(1)))
	}
	key.Net = 0
	for i := range 256 {
		key.Addr = netip.AddrFrom4([4]byte{203, 0, 113, byte(i)}).As16() // those of newOtherHost
		err = errors.Join(err, l.coll.Maps[kernelMapNodes].Put(key, uint32(1)))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (r *raw) read() {
	defer close(r.done)
	var rec ringbuf.Record
	for last := false; ; {
		r.ring.SetDeadline(time.Now().Add(time.Millisecond))
		for r.ring.ReadInto(&rec) == nil {
			if kernelEventType(rec.RawSample[0]) == evCall {
				var e kernelCallEvent
				copy(unsafe.Slice((*byte)(unsafe.Pointer(&e)), unsafe.Sizeof(e)), rec.RawSample)
				r.calls = append(r.calls, e)
			}
			if kernelEventType(rec.RawSample[0]) == evClose {
				dispatch(rec.RawSample, func(e *kernelConnEvent) { r.closes = append(r.closes, *e) })
			}
		}
		if last {
			return
		}
		select {
		case <-r.stop:
			last = true
		default:
		}
	}
}

// finish gives all reports and counters; nothing stays in the kernel.
func (r *raw) finish(t testing.TB) ([]kernelCallEvent, map[string]uint64) {
	atRest(t, r.port)
	close(r.stop)
	<-r.done
	m, err := newMapReader(r.coll.Maps)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]uint64{}
	for i, name := range r.counters {
		counts[name], _ = m.counter(i)
	}
	if err := errors.Join(r.ring.Close(), r.Close()); err != nil {
		t.Error(err)
	}
	return r.calls, counts
}

// monotonic is the time by the clock of the programs.
func monotonic() int64 {
	ns, _ := clock.Monotonic() // it cannot fail on Linux
	return ns
}

// stamped is a call as the load generator made it.
type stamped struct {
	op             string
	request, reply int
	sent, received int64 // CLOCK_MONOTONIC
}

// stamper is a load generator that notes every call: what was sent, what came back, and when.
type stamper struct {
	conn     net.Conn
	in       *bufio.Reader
	rand     *rand.Rand
	pipeline int
	unique   bool
	calls    []stamped
	inOrder  sync.Mutex
}

// Read waits for replies, and takes them while nothing is being sent: the kernel reports a send when its system call
// ends, and on a busy machine another thread may have read the reply by then. The order of such a connection is lost
// for a while, as it should be. A server reads whether or not its replies are taken, so no write waits for ever.
func (s *stamper) Read(p []byte) (n int, err error) {
	raw, err := s.conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return 0, err
	}
	if waits := raw.Read(func(fd uintptr) bool {
		s.inOrder.Lock()
		defer s.inOrder.Unlock()
		n, err = syscall.Read(int(fd), p)
		return err != syscall.EAGAIN
	}); waits != nil {
		return 0, waits
	}
	if n == 0 && err == nil {
		return 0, io.EOF
	}
	return max(n, 0), err
}

func command(args ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b.String()
}

// next makes a call whose request and reply have sizes that hardly any other has; with unique, that no other of the
// connection has.
func (s *stamper) next() (string, stamped) {
	if s.unique {
		v := strings.Repeat("v", 1+len(s.calls)*3)
		r := command("ECHO", v)
		return r, stamped{op: "ECHO", request: len(r), reply: len(fmt.Sprintf("$%d\r\n", len(v))) + len(v) + 2}
	}
	n := s.rand.IntN(3000)
	if s.rand.IntN(50) == 0 {
		n = 20_000 + s.rand.IntN(80_000) // more than a read of the server holds
	}
	v := strings.Repeat("v", n)
	bulk := len(fmt.Sprintf("$%d\r\n", n)) + n + 2
	key := "k" + strconv.Itoa(s.rand.IntN(1000))
	switch s.rand.IntN(6) {
	case 0:
		r := command("set", key, v)
		return r, stamped{op: "SET", request: len(r), reply: len("+OK\r\n")}
	case 1:
		r := command("lrange", "no"+key, "0", "-1")
		return r, stamped{op: "LRANGE", request: len(r), reply: len("*0\r\n")}
	case 2:
		r := command("mget", "no1", "no2", "no3"+strings.Repeat("x", n%64))
		return r, stamped{op: "MGET", request: len(r), reply: len("*3\r\n$-1\r\n$-1\r\n$-1\r\n")}
	default:
		r := command("ECHO", v)
		return r, stamped{op: "ECHO", request: len(r), reply: bulk}
	}
}

// batch sends a pipeline in one or several writes and reads its replies.
func (s *stamper) batch() error {
	var out strings.Builder
	first := len(s.calls)
	for range s.pipeline {
		text, c := s.next()
		out.WriteString(text)
		s.calls = append(s.calls, c)
	}
	text := out.String()
	for i := first; i < len(s.calls); i++ {
		s.calls[i].sent = monotonic()
	}
	errs := make(chan error, 1)
	write := func() {
		for len(text) > 0 {
			n := len(text)
			if s.rand.IntN(3) == 0 {
				n = 1 + s.rand.IntN(n) // a request may come in two parts
			}
			s.inOrder.Lock()
			_, err := s.conn.Write([]byte(text[:n]))
			s.inOrder.Unlock()
			if err != nil {
				errs <- err
				return
			}
			text = text[n:]
		}
		errs <- nil
	}
	if len(text) < 16<<10 {
		write()
	} else { // big pipelines would lock up if nobody read meanwhile
		go write()
	}
	for i := first; i < len(s.calls); i++ {
		if _, err := s.in.Discard(s.calls[i].reply); err != nil {
			return err
		}
		s.calls[i].received = monotonic()
	}
	return <-errs
}

func newStamper(t testing.TB, c net.Conn, pipeline, seed int) *stamper {
	t.Helper()
	t.Cleanup(func() { c.Close() })
	s := &stamper{conn: c, rand: rand.New(rand.NewPCG(uint64(seed), 7)), pipeline: pipeline}
	s.in = bufio.NewReaderSize(s, 4096)
	return s
}

func stampers(t testing.TB, port, conns, pipeline int) []*stamper {
	t.Helper()
	var all []*stamper
	for i := range conns {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, newStamper(t, c, pipeline, i))
	}
	return all
}

func run(t testing.TB, all []*stamper, batches int) {
	t.Helper()
	var wg sync.WaitGroup
	for _, s := range all {
		wg.Go(func() {
			for range batches {
				if err := s.batch(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// TestPairing: every call of connections that were seen from their start is paired right, at both ends, whatever the
// pipeline; connections that were there before are left unpaired until their order is known, and then paired right as
// well.
func TestPairing(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer)
	for _, c := range []struct{ conns, pipeline, batches int }{
		{1, 1, 300},
		{1, 16, 40},
		{1, 100, 10},
		{50, 1, 40},
		{50, 16, 6},
		{20, 100, 3},
		{500, 1, 5},
		{500, 16, 3},
	} {
		for _, before := range []bool{false, true} {
			t.Run(fmt.Sprintf("conns=%d,pipeline=%d,before=%v", c.conns, c.pipeline, before), func(t *testing.T) {
				port := startServer(t)
				var all []*stamper
				if before {
					all = stampers(t, port, c.conns, c.pipeline)
					for _, s := range all {
						s.unique = true
					}
					run(t, all, 2)
				}
				r := openRaw(t, port, constants{
					"strict_all": uint32(1), "sample_per_tick": uint32(1 << 30),
					"slow_ns": uint64(1) << 60, ringBytes: uint32(64 << 20),
				})
				if !before {
					all = stampers(t, port, c.conns, c.pipeline)
				}
				run(t, all, c.batches)
				calls, counts := r.finish(t)
				checkPairs(t, all, calls, counts, before)
			})
		}
	}
}

func checkPairs(t *testing.T, all []*stamper, calls []kernelCallEvent, counts map[string]uint64, before bool) {
	t.Helper()
	if counts["dropped"] != 0 {
		t.Errorf("%d reports dropped, although the ring buffer has room for all", counts["dropped"])
	}
	made := 0
	byEnd := map[netip.AddrPort]*stamper{}
	for _, s := range all {
		byEnd[s.conn.LocalAddr().(*net.TCPAddr).AddrPort()] = s
		if before {
			s.calls = s.calls[2*s.pipeline:]
		}
		made += len(s.calls)
	}
	paired := map[kernelRole]int{}
	wrong := 0
	// Calls of a connection are numbered by the programs; those of one that was there before begin where its order
	// became known.
	type key struct {
		end  netip.AddrPort
		role kernelRole
	}
	next := map[key]int{}
	for _, e := range calls {
		client, _ := endsOf(&e.Addr)
		s := byEnd[client.AddrPort]
		if s == nil || e.Flags&flagMerged != 0 {
			continue
		}
		k := key{client.AddrPort, e.Role}
		i := next[k]
		if before {
			i = slices.IndexFunc(s.calls, func(c stamped) bool {
				return c.request == int(e.ReqBytes) &&
					c.reply == int(e.RepBytes)
			})
		}
		if i < 0 || i >= len(s.calls) || s.calls[i].request != int(e.ReqBytes) || s.calls[i].reply != int(e.RepBytes) {
			wrong++
			continue
		}
		next[k] = i + 1
		paired[e.Role]++
		if at := e.At; at[0] > at[1] && e.Role == roleServer || at[1] > at[2] && e.Role == roleServer || at[2] > at[3] {
			t.Fatalf("a call goes back in time: %v", at)
		}
	}
	t.Logf("%d calls: %d paired at the server, %d at the client, %d wrong; %v", made, paired[roleServer],
		paired[roleClient], wrong, counts)
	if wrong > 0 {
		t.Errorf("%d wrong pairs", wrong)
	}
	if !before && (paired[roleServer] != made || paired[roleClient] != made) {
		t.Errorf("paired %d and %d of %d calls", paired[roleServer], paired[roleClient], made)
	}
	if before && paired[roleServer] == 0 {
		t.Error("the order of connections that were there before was never known")
	}
}
