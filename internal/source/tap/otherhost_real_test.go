//go:build linux

package tap

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"slowpath/internal/house/needs"
)

// otherHost is a network namespace, joined to this one by a pair of virtual Ethernet devices: to a server here a client
// there is one of another host, though the same kernel has both ends.
type otherHost struct {
	name   string
	device string // here; what it sends goes there
	here   string // addresses
}

var otherHosts atomic.Int32

// newOtherHost makes one that ends with the test. Its addresses are of 203.0.113.0/24, which RFC 5737 keeps for
// documents.
func newOtherHost(t testing.TB) *otherHost {
	t.Helper()
	id := (os.Getpid() + int(otherHosts.Add(1))) % 64 * 4
	h := &otherHost{
		name: fmt.Sprintf("slowpath-tap-%d-%d", os.Getpid(), id), device: fmt.Sprintf("sptap%d", id),
		here: fmt.Sprintf("203.0.113.%d", id+1),
	}
	there := h.device + "p"
	t.Cleanup(func() {
		_ = exec.Command("ip", "link", "del", h.device).Run() // it may have ended with its peer
		if out, err := exec.Command("ip", "netns", "del", h.name).CombinedOutput(); err != nil {
			t.Errorf("ip netns del %s: %v: %s", h.name, err, out)
		}
	})
	for _, line := range []string{
		"ip netns add " + h.name,
		"ip link add " + h.device + " type veth peer name " + there + " netns " + h.name,
		fmt.Sprintf("ip addr add %s/30 dev %s", h.here, h.device),
		"ip link set " + h.device + " up",
		fmt.Sprintf("ip -n %s addr add 203.0.113.%d/30 dev %s", h.name, id+2, there),
		fmt.Sprintf("ip -n %s link set %s up", h.name, there),
	} {
		h.run(t, line)
	}
	return h
}

func (h *otherHost) run(t testing.TB, line string) {
	t.Helper()
	argv := strings.Fields(line)
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", line, err, out)
	}
}

// Of a path that is slow: 1 Mbit/s towards the other host, with 2 kB that pass at once. No byte is dropped for being
// late.
const slowPathBytesPerSecond, slowPathBurst = 125_000, 2000

func (h *otherHost) slowPath(t testing.TB) {
	t.Helper()
	h.run(t, fmt.Sprintf("tc qdisc add dev %s root tbf rate %dbit burst %d latency 20s", h.device,
		8*slowPathBytesPerSecond, slowPathBurst))
}

// onSlowPath is how long so many bytes take there, in nanoseconds.
func onSlowPath(bytes int64) int64 { return (bytes - slowPathBurst) * 1e9 / slowPathBytesPerSecond }

// exec runs a program there and gives what it printed.
func (h *otherHost) exec(t testing.TB, argv ...string) string {
	t.Helper()
	out, err := exec.Command("ip", append([]string{"netns", "exec", h.name}, argv...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v there: %v: %s", argv, err, out)
	}
	return string(out)
}

// dial connects from there: a socket stays in the namespace of the thread that made it.
func (h *otherHost) dial(t testing.TB, port int) net.Conn {
	t.Helper()
	var c net.Conn
	err := inNetNS(h.name, func() (err error) {
		c, err = net.Dial("tcp", net.JoinHostPort(h.here, strconv.Itoa(port)))
		return err
	})
	if err != nil {
		t.Fatalf("connecting from %s: %v", h.name, err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func (h *otherHost) stampers(t testing.TB, port, conns, pipeline int) []*stamper {
	t.Helper()
	var all []*stamper
	for i := range conns {
		all = append(all, newStamper(t, h.dial(t, port), pipeline, i))
	}
	return all
}

// TestOtherHost: the calls of a client at another address are parsed at each end, by default too, and every one is
// paired right at both.
func TestOtherHost(t *testing.T) {
	needs.Real(t, needs.BPF, needs.NetworkNamespaces, needs.RedisServer)
	h := newOtherHost(t)
	for _, c := range []struct{ conns, pipeline, batches int }{{1, 1, 300}, {20, 1, 40}, {10, 16, 10}} {
		for _, every := range []uint32{0, 1 << 30} {
			t.Run(fmt.Sprintf("conns=%d,pipeline=%d,reported=%v", c.conns, c.pipeline, every > 0), func(t *testing.T) {
				port := startServerAt(t, h.here)
				r := openRaw(t, port, constants{
					"sample_per_tick": every, "slow_ns": uint64(1) << 60,
					ringBytes: uint32(64 << 20),
				})
				all := h.stampers(t, port, c.conns, c.pipeline)
				run(t, all, c.batches)
				calls, counts := r.finish(t)
				if every > 0 {
					checkPairs(t, all, calls, counts, false)
				}
				// another test that looks for servers on this host may have asked this one, too
				made, alone := uint64(c.conns*c.pipeline*c.batches), counts["conns"] == 2*uint64(c.conns)
				for _, end := range []string{"calls.server", "calls.client"} {
					if seen := counts[end]; seen < made || alone && seen > made {
						t.Errorf("%d calls made; %v", made, counts)
					}
				}
			})
		}
	}
}

// nodeAt is one server to be watched.
func nodeAt(ip string, port int) []Node {
	return []Node{{Address: "server", Remote: netip.AddrPortFrom(netip.MustParseAddr(ip), uint16(port))}}
}

func TestRealBothEndsOfOtherHost(t *testing.T) {
	needs.Real(t, needs.BPF, needs.NetworkNamespaces, needs.RedisServer, needs.RedisCLI, needs.Benchmark,
		needs.Command("tc", "iproute2"))
	h := newOtherHost(t)
	port := startServerAt(t, h.here)
	w := watchTaped(t, Options{Nodes: nodeAt(h.here, port)})
	p := strconv.Itoa(port)
	h.exec(t, "redis-benchmark", "-h", h.here, "-p", p, "-n", "2000", "-c", "8", "-t", "set,get", "-q")
	const slow, bytes = 5, 20_000
	h.exec(t, "redis-cli", "-h", h.here, "-p", p, "-r", strconv.Itoa(slow), "DEBUG", "SLEEP", "0.03")
	h.exec(t, "redis-cli", "-h", h.here, "-p", p, "SETRANGE", "big", strconv.Itoa(bytes-1), "x")
	h.slowPath(t)
	h.exec(t, "redis-cli", "-h", h.here, "-p", p, "GET", "big")
	w.stop(t)
	checked(t, w, "other-host", otherHostMade{
		Served: commandsServed(t, h.here, p), Slow: slow, SleptNs: 30e6, Bytes: bytes, PathNs: onSlowPath(bytes),
	}, checkBothEnds)
}

// commandsServed is how many commands a server has answered, by its own count.
func commandsServed(t *testing.T, ip, port string) int {
	t.Helper()
	out, err := exec.Command("redis-cli", "-h", ip, "-p", port, "info", "stats").Output()
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(out, []byte("total_commands_processed:"))
	n := 0
	if _, err := fmt.Sscan(string(rest), &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// inNetNS calls do in a network namespace, on a thread that ends with it: nothing else may run there. The main thread
// cannot end, and /proc/self is about it.
func inNetNS(name string, do func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			defer runtime.UnlockOSThread()
			done <- inNetNS(name, do)
			return
		}
		f, err := os.Open("/run/netns/" + name)
		if err == nil {
			defer f.Close()
			err = unix.Setns(int(f.Fd()), unix.CLONE_NEWNET)
		}
		if err == nil {
			err = do()
		}
		done <- err
	}()
	return <-done
}
