//go:build linux

package tap

import (
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"strconv"
	"testing"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/recording"
)

// openTap is a whole tap, and what it writes down.
func openTap(t testing.TB, o Options) (*Tap, *recording.Recording) {
	t.Helper()
	p := openTaped(t, o)
	return p.Tap, p.rec
}

// serverAt runs a real server at one address of this host.
func serverAt(t *testing.T, at netip.AddrPort, args ...string) Node {
	t.Helper()
	cmd := exec.Command("redis-server", append([]string{
		"--bind", at.Addr().String(), "--port", strconv.Itoa(int(at.Port())),
		"--save", "", "--dir", t.TempDir(),
	}, args...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	await.Until(t, "the server listens", func() bool { return listensAt(at.String()) })
	return Node{Address: at.String(), Remote: at, PID: cmd.Process.Pid, Port: int(at.Port())}
}

// onePort is a free one, at 127.0.0.host.
func onePort(t *testing.T, host byte) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, host}), uint16(l.Addr().(*net.TCPAddr).Port))
}

func TestRealNodesKeptApart(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer, needs.RedisCLI)
	at := onePort(t, 1)
	next := func(host byte) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, host}), at.Port())
	}
	first, second, third, stranger := serverAt(t, at), serverAt(t, next(2)), serverAt(t, onePort(t, 1)),
		serverAt(t, next(3))
	third.PID = 0 // as one that could not be found
	w := watchTaped(t, Options{Nodes: []Node{first, second, third}})
	const calls = 40
	talkTo := func(n Node, commands ...string) { // by a process of its own: slowpath's own is not watched
		for _, c := range commands {
			if out, err := exec.Command("redis-cli", "-h", n.Remote.Addr().String(), "-p", fmt.Sprint(n.Port), "-r",
				fmt.Sprint(calls), c, "key").CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
	}
	talkTo(first, "GET", "STRLEN")
	talkTo(second, "GET", "LLEN")
	talkTo(third, "GET", "SCARD")
	talkTo(stranger, "GET", "LLEN")
	w.stop(t)
	checked(t, w, "nodes", nodesMade{Calls: calls, Ops: map[string][]string{
		first.Address: {"GET", "STRLEN"}, second.Address: {"GET", "LLEN"}, third.Address: {"GET", "SCARD"},
	}}, checkNodesApart)
}
