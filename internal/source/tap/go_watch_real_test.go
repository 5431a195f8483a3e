//go:build linux

package tap

import (
	"debug/elf"
	"errors"
	"os"
	"reflect"
	"runtime"
	"testing"
	"time"

	"github.com/cilium/ebpf/link"

	"slowpath/internal/house/needs"
	"slowpath/internal/lab/clients"
	"slowpath/internal/recording"
	"slowpath/internal/source/hostfs"
)

// TestGoroutinesWaitForThePool: what calls of Go programs wait for in the pools of their libraries is what the
// libraries count of it themselves. Where there are connections for all callers hardly any waits.
func TestGoroutinesWaitForThePool(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer)
	cache, err := clients.OpenCache("")
	if err != nil {
		t.Fatal(err)
	}
	const callers = 16
	for _, name := range []clients.Name{
		clients.GoRedis6, clients.GoRedis8, clients.GoRedis9, clients.Redigo, clients.Rueidis,
	} {
		program, err := cache.Get(t.Context(), name, t.Output())
		if errors.Is(err, clients.ErrTool) || errors.Is(err, clients.ErrRegistry) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		run := func(t *testing.T, conns int) (clients.Summary, recording.LibraryWaits, *recording.Recording) {
			n := serverAt(t, onePort(t, 1))
			w := watchTaped(t, Options{Nodes: []Node{n}, Slow: 5 * time.Millisecond})
			own, err := program.Run(t.Context(), t.TempDir(), clients.Options{
				Addresses: []string{n.Address}, Workers: callers, PoolSize: conns, MaxIdle: conns, Keys: 10,
				Commands: []clients.Command{{Args: []string{"GET", "{n}"}}}, Duration: 2 * time.Second,
			})
			if err != nil {
				t.Fatal(err)
			}
			w.stop(t)
			w.rec.Index()
			var waits recording.LibraryWaits
			for _, s := range w.rec.Snapshots {
				if s.Name == recording.SnapshotLibrary {
					waits = recording.LibraryWaitsOf(s.Body)
				}
			}
			if waits.Calls == 0 || waits.Others > waits.Calls/2 { // some are late, without a CPU
				t.Fatalf("calls by the library: %+v of %d", waits, own.Calls)
			}
			return own, waits, w.rec
		}
		t.Run(string(name)+" with two connections", func(t *testing.T) {
			own, waits, rec := run(t, 2)
			mean, counted := waits.WaitedNs/waits.Calls, own.Pool.Wait.Nanoseconds()/own.Calls
			if counted > 0 && (mean < counted/2 || mean > counted*2) { // go-redis 8 does not count
				t.Errorf("a call waits %v, and the library counts %v", time.Duration(mean), time.Duration(counted))
			}
			if waits.WaitedNs < 2*waits.CallsNs { // not each: rueidis gives a connection to who asks, before who waits
				t.Errorf("calls take longer than they wait: %+v", waits)
			}
			operations, calls := 0.0, 0.0
			for _, h := range rec.HistogramSums(recording.SourceTap) {
				switch h.Op {
				case recording.Operations + " GET":
					operations = h.Sum.Mean()
				case recording.AwaitedCalls + " GET":
					calls = h.Sum.Mean()
				}
			}
			if operations < 2*calls {
				t.Errorf("operations take %v on average, their calls %v", time.Duration(operations),
					time.Duration(calls))
			}
		})
		t.Run(string(name)+" with one for each", func(t *testing.T) {
			if _, waits, _ := run(t, callers); waits.Longer > waits.Calls/2 {
				t.Errorf("calls wait longer than they take: %+v", waits)
			}
		})
	}
}

// TestGoroutinesWaitForLock: a lock of the program that goroutines take before they call, and that another one holds.
func TestGoroutinesWaitForLock(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer)
	cache, err := clients.OpenCache("")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []clients.Name{clients.GoRedis6, clients.GoRedis8, clients.GoRedis9, clients.Redigo} {
		t.Run(string(name), func(t *testing.T) {
			program, err := cache.Get(t.Context(), name, t.Output())
			if errors.Is(err, clients.ErrTool) || errors.Is(err, clients.ErrRegistry) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			n := serverAt(t, onePort(t, 1))
			w := openTaped(t, Options{Nodes: []Node{n}, Slow: 20 * time.Millisecond})
			w.recorder.functionIn = func(pid uint32, stack []uint64) string { // it needs more files than a tape has
				return w.goPrograms.functionIn(hostfs.Root{}, pid, stack)
			}
			w.start(t)
			_, err = program.Run(t.Context(), t.TempDir(), clients.Options{
				Addresses: []string{n.Address}, Workers: 8, PoolSize: 8, MaxIdle: 8, Keys: 10, Rate: 400,
				Commands: []clients.Command{{Args: []string{"GET", "{n}"}}}, Duration: 2 * time.Second,
				LockEvery: 50 * time.Millisecond, LockFor: 100 * time.Millisecond,
			})
			if err != nil {
				t.Fatal(err)
			}
			w.stop(t)
			w.rec.Index()
			ns, holder := waitsBefore(w.rec, recording.App, recording.LockWait)
			if ns == 0 || holder != "main.(*program).holdLock" {
				t.Errorf("the longest wait for a lock was %v, which %q held", time.Duration(ns), holder)
			}
		})
	}
}

//go:noinline
func hooked(n int) int {
	var used [4096]byte
	for i := range used {
		used[i] = byte(n + i)
	}
	return int(used[n])
}

// TestHookOfGoFunction: a hook at the check of the stack is met at each call.
func TestHookOfGoFunction(t *testing.T) {
	needs.Real(t, needs.BPF)
	spec, err := specWith(constants{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := load(spec)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	w, pid := newGoWatch(l.coll), uint32(os.Getpid())
	defer w.Close()
	if w.program == nil {
		t.Fatalf("the kernel does not take the program: %v", l.blind)
	}
	at := runtime.FuncForPC(reflect.ValueOf(hooked).Pointer()).Entry()
	own, err := elf.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	fn := goFunction{uint64(at), uint64(at) + 64} // the tests are not position-independent
	code, offset, err := fn.code(own)
	if err != nil {
		t.Fatal(err)
	}
	place, _ := stackCheck(own.Machine, code)
	if err := w.processes.Put(pid, kernelGoProcess{}); err != nil {
		t.Fatal(err)
	}
	ex, err := link.OpenExecutable("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	links, err := w.attach(ex, pid, link.UprobeMultiOptions{
		Addresses: []uint64{offset + uint64(place)}, Cookies: []uint64{uint64(kernelGoHookGO_ENTER)},
	})
	if err != nil {
		t.Fatal(err)
	}
	const calls = 100
	for i := range calls {
		hooked(i)
	}
	p, err := w.read(pid)
	if err != nil || closeAll(links) != nil {
		t.Fatal(err)
	}
	if p.Hits < calls || p.Hits > calls+10 { // it is met again after the stack has grown
		t.Errorf("met %d times in %d calls", p.Hits, calls)
	}
}
