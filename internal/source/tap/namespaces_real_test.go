//go:build linux

package tap

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/recording"
)

// space is a network namespace that has a loopback device alone, and a server at 127.0.0.1 in it.
type space struct {
	name string
	node Node
}

// newSpace makes one that ends with the test. The address by which the node is known is of 203.0.113.0/24, as if its
// port were published.
func newSpace(t *testing.T, n byte, port int) space {
	t.Helper()
	s := space{name: fmt.Sprintf("slowpath-space-%d-%d", os.Getpid(), n)}
	for _, line := range []string{"ip netns add " + s.name, "ip -n " + s.name + " link set lo up"} {
		argv := strings.Fields(line)
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", line, err, out)
		}
	}
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", s.name).Run() }) // it was made above
	cmd := exec.Command("ip", "netns", "exec", s.name, "redis-server", "--port", strconv.Itoa(port),
		"--bind", "127.0.0.1", "::1",
		"--save", "", "--dir", t.TempDir(), "--enable-debug-command", "yes")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	serverPIDs.Store(port+int(n), cmd.Process.Pid) // ip execs it
	s.node = Node{
		Address: s.name, Remote: netip.AddrPortFrom(netip.AddrFrom4([4]byte{203, 0, 113, 200 + n}), uint16(port)),
		PID: cmd.Process.Pid, Port: port,
	}
	await.Until(t, "the server listens", func() bool {
		c, err := s.dial("127.0.0.1", port, 0)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return s
}

// dial connects within the namespace, from a port of the choice.
func (s space) dial(ip string, port, from int) (c net.Conn, err error) {
	err = inNetNS(s.name, func() (err error) {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip), Port: from}}
		c, err = d.Dial("tcp", net.JoinHostPort(ip, strconv.Itoa(port)))
		return err
	})
	return c, err
}

// talkIn is a connection within a namespace.
func (s space) talk(t *testing.T, ip string, port, from int) *talk {
	t.Helper()
	c, err := s.dial(ip, port, from)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	return &talk{t: t, conn: c}
}

func TestRealSameAddresses(t *testing.T) {
	needs.Real(t, needs.BPF, needs.NetworkNamespaces, needs.RedisServer)
	const calls = 60
	at := onePort(t, 1)
	port := int(at.Port())
	from := port + 1
	one, two, stranger := newSpace(t, 1, port), newSpace(t, 2, port), newSpace(t, 3, port)
	for tape, ip := range spacesTapes {
		t.Run(tape, func(t *testing.T) {
			w := watchTaped(t, Options{Nodes: []Node{one.node, two.node}, Slow: 20 * time.Millisecond})
			a, b, c := one.talk(t, ip, port, from), two.talk(t, ip, port, from), stranger.talk(t, ip, port, from)
			for range calls {
				a.ask("$-1\r\n", "GET", "no-such-key")
				b.ask(":0\r\n", "STRLEN", "no-such-key")
				c.ask(":0\r\n", "LLEN", "no-such-key")
			}
			a.ask("+OK\r\n", "DEBUG", "SLEEP", "0.03")
			b.ask("+OK\r\n", "DEBUG", "SLEEP", "0.05")
			for _, k := range []*talk{a, b, c} {
				k.conn.Close()
			}
			w.stop(t)
			checked(t, w, tape, spacesMade{one.name, two.name, calls}, checkSameAddresses)
		})
	}
}

// TestSlotsAreGivenBack: connections that come and go use the same slots of pairs again.
func TestSlotsAreGivenBack(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer)
	port := startServer(t)
	r := openRaw(t, port, constants{"max_pairs": uint32(8)})
	for range 50 {
		k := newTalk(t, port)
		k.ask("+PONG\r\n", "PING")
		k.conn.Close()
		atRest(t, port)
	}
	_, counts := r.finish(t)
	if counts["pairs_full"] != 0 || counts["ambiguous"] != 0 || counts["conns"] != 100 ||
		counts["calls.server"] != 50 {
		t.Errorf("%v", counts)
	}
}

// TestManyConnections: of more connections than are followed the rest is counted, and is said to be unseen; the others
// are seen as ever.
func TestManyConnections(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer, needs.RedisCLI, needs.Benchmark)
	const each, most = 1_000, 1_200
	nodes := forMany(t, each)
	p := watchTaped(t, Options{Nodes: nodes, Connections: most})
	idle(t, nodes, each)
	checkMany(t, p, nodes, each, most)
}

// moreClients connect once there are more connections than are followed.
const moreClients = 100

// forMany are two servers that take so many connections each.
func forMany(t *testing.T, each int) (nodes []Node) {
	t.Helper()
	for range 2 {
		nodes = append(nodes, serverAt(t, onePort(t, 1), "--maxclients", strconv.Itoa(each+2*moreClients)))
	}
	return nodes
}

// checkMany ends a watch of servers with so many connections each, of which so many ends are followed.
func checkMany(t *testing.T, p *taper, nodes []Node, each, most int) {
	t.Helper()
	for range moreClients {
		k := newTalk(t, nodes[0].Port)
		k.ask("+PONG\r\n", "PING")
	}
	p.stop(t)
	last := func(name string) float64 {
		v, _ := p.rec.Series(recording.SourceTap, recording.SubjectSelf, "tap."+name).Last()
		return v
	}
	if last("conns") < float64(most) || last("conns_full") < float64(2*len(nodes)*each-most) ||
		last("unfollowed") < moreClients {
		t.Errorf("%v followed, %v not; %v calls counted, %v left out", last("conns"), last("conns_full"),
			last("calls.server"), last("unfollowed"))
	}
	said := false
	for _, e := range p.rec.EventsOf(recording.SourceTap, recording.SubjectSelf, recording.KindUnseen) {
		u := recording.DetailOf[recording.Unseen](e)
		t.Logf("unseen: %s, %.0f of %.0f (%.1f %%)", u.What, u.Count, u.Of, 100*u.Share())
		said = said || u.What == "calls on connections that were not followed" && u.Share() > 0.5
	}
	if !said {
		t.Error("the recording does not say that calls were not seen")
	}
}

// idle opens connections to each node that are not used; end closes them.
func idle(t *testing.T, nodes []Node, each int) (end func()) {
	t.Helper()
	var started []*exec.Cmd
	end = func() {
		for _, cmd := range started {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		started = nil
	}
	t.Cleanup(end)
	for _, n := range nodes {
		cmd := exec.Command("redis-benchmark", "-p", strconv.Itoa(n.Port), "-c", strconv.Itoa(each), "-I")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		started = append(started, cmd)
	}
	for _, n := range nodes {
		want := fmt.Sprintf("connected_clients:%d", each+1) // and redis-cli
		await.Until(t, "all are connected", func() bool {
			out, _ := exec.Command("redis-cli", "-p", strconv.Itoa(n.Port), "INFO", "clients").Output()
			return strings.Contains(string(out), want)
		})
	}
	return end
}
