//go:build linux

package tap

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
	"slowpath/internal/source/host"
)

// openTap is a whole tap, and what it writes down.
func openTap(t testing.TB, o Options) (*Tap, *recording.Recording) {
	t.Helper()
	rec := recording.New()
	o.Clock, o.Files, o.Sink = clock.New(), host.Root{}, rec
	source, err := Open(o)
	needs(t, err)
	return source, rec
}

// runTap is one that runs; stop ends it and gives what it saw.
func runTap(t *testing.T, o Options) (stop func() *recording.Recording) {
	t.Helper()
	source, rec := openTap(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- source.Run(ctx) }()
	return func() *recording.Recording {
		cancel()
		if err := errors.Join(<-ended, source.Close()); err != nil {
			t.Error(err)
		}
		return rec
	}
}

// serverAt runs a real server at one address of this host.
func serverAt(t *testing.T, at netip.AddrPort, args ...string) Node {
	t.Helper()
	bin, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("needs redis-server")
	}
	cmd := exec.Command(bin, append([]string{
		"--bind", at.Addr().String(), "--port", strconv.Itoa(int(at.Port())),
		"--save", "", "--dir", t.TempDir(),
	}, args...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if c, err := net.Dial("tcp", at.String()); err == nil {
			c.Close()
			return Node{Address: at.String(), Remote: at, PID: cmd.Process.Pid, Port: int(at.Port())}
		}
		if time.Now().After(deadline) {
			t.Fatal("redis-server does not answer at ", at)
		}
	}
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

// TestNodesKeptApart: the calls of servers that are watched at once are in the histograms of the server that they
// were sent to, also where their ports are the same. Calls to one that is not watched are nowhere.
func TestNodesKeptApart(t *testing.T) {
	at := onePort(t, 1)
	next := func(host byte) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, host}), at.Port())
	}
	first, second, third, stranger := serverAt(t, at), serverAt(t, next(2)), serverAt(t, onePort(t, 1)),
		serverAt(t, next(3))
	third.PID = 0 // as one that could not be found
	stop := runTap(t, Options{Nodes: []Node{first, second, third}})
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
	rec := stop()

	got := map[string]int64{}
	for _, h := range rec.Histograms {
		d, err := hdrhistogram.Decode(h.HDR)
		if err != nil {
			t.Fatal(err)
		}
		got[h.Node+" "+h.Op] += d.TotalCount()
	}
	want := map[string]int64{}
	for n, ops := range map[Node][]string{first: {"GET", "STRLEN"}, second: {"GET", "LLEN"}, third: {"GET", "SCARD"}} {
		for _, op := range ops {
			want[n.Address+" server "+op] = calls
			want[n.Address+" client "+op] = calls
		}
	}
	// some returns to the client come before the server's end has published what it sent (light_read)
	for k, n := range got {
		if want[k] == calls && n > 0 && n < calls && strings.Contains(k, " client ") {
			got[k] = calls
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("histograms hold %v, the calls made are %v", got, want)
	}
}
