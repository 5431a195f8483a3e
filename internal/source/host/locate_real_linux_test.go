package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
)

func TestLocateByConnection(t *testing.T) {
	needs.Real(t, needs.Root, needs.RedisServer)
	redis := startRedis(t, 22020)
	c, err := net.Dial("tcp", "127.0.0.1:22020")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = fmt.Fprint(c, "PING\r\n")
	_, _ = c.Read(make([]byte, 64)) // answered, so accepted
	q := Query{
		Network: "tcp", Local: c.LocalAddr().String(), Remote: c.RemoteAddr().String(),
		WantPID: redis.Process.Pid,
	}
	p, err := Locate(Root{}, q)
	if err != nil || p.PID != redis.Process.Pid || p.Foreign || p.Port != 22020 || p.Comm != "redis-server" ||
		!p.OwnNet {
		t.Errorf("got %+v, %v", p, err)
	}
	q.WantPID = 1
	if p, err = Locate(Root{}, q); err != nil || !p.Foreign {
		t.Errorf("a PID that is not the server's: got %+v, %v", p, err)
	}
}

// TestLocateOtherClientWithOurPort: our connection is gone, and another client has our ephemeral port for a connection
// to another process. That is not the server.
func TestLocateOtherClientWithOurPort(t *testing.T) {
	needs.Real(t, needs.Root, needs.RedisServer)
	redis := startRedis(t, 22024)
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	c, err := net.Dial("tcp", other.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	accepted, err := other.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	q := Query{Network: "tcp", Local: c.LocalAddr().String(), Remote: "127.0.0.1:22024"}
	if p, err := Locate(Root{}, q); err != nil || p.PID != redis.Process.Pid {
		t.Errorf("got %+v, %v", p, err)
	}
}

// TestFind: sockets are found by their ends, in both families and as the server's end has them; a listener is not taken
// for one that is gone.
func TestFind(t *testing.T) {
	needs.Real(t)
	dual, err := net.Listen("tcp", ":0") // its sockets are of IPv6, also those of clients by IPv4
	if err != nil {
		t.Fatal(err)
	}
	defer dual.Close()
	table, err := Root{}.Sockets(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	_, port, _ := net.SplitHostPort(dual.Addr().String())
	var all []Ends
	for _, host := range []string{"127.0.0.1", "::1"} {
		c, err := net.Dial("tcp", net.JoinHostPort(host, port))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		e := Ends{netip.MustParseAddrPort(c.LocalAddr().String()), netip.MustParseAddrPort(c.RemoteAddr().String())}
		all = append(all, e, e.Other())
	}
	gone := all[0]
	gone.Local = netip.AddrPortFrom(gone.Local.Addr(), 1)
	for range 40 { // more than are asked for at once
		all = append(all, gone, gone.Other())
	}
	for kind, table := range map[string]SocketTable{"sock_diag": table, "proc": procSockets{
		fs:  Root{},
		pid: os.Getpid(),
	}} {
		found := map[Ends]bool{}
		if err := table.Find(all,
			func(s *Socket) { found[Ends{s.Local, s.Remote}] = s.State == tcpEstablished }); err != nil {
			t.Fatal(err)
		}
		if len(found) != 4 || !found[all[0]] || !found[all[1]] || !found[all[2]] || !found[all[3]] {
			t.Errorf("%s found %v of %v", kind, found, all[:4])
		}
	}
}

func TestLocateByListener(t *testing.T) {
	needs.Real(t, needs.Root, needs.RedisServer)
	redis := startRedis(t, 22021)
	for _, listen := range []string{"127.0.0.1:22021", "localhost:22021", "0.0.0.0:22021", "[::1]:22021"} {
		if p, err := Locate(Root{}, Query{Listen: listen}); err != nil || p.PID != redis.Process.Pid {
			t.Errorf("%s: got %+v, %v", listen, p, err)
		}
	}
	for _, listen := range []string{"127.0.0.1:22099", "192.0.2.1:22021", "example.com:22021", "nonsense", ""} {
		if p, err := Locate(Root{}, Query{Listen: listen}); !errors.Is(err, ErrNotHere) {
			t.Errorf("%s: got %+v, %v", listen, p, err)
		}
	}
}

func TestLocateByUnixSocket(t *testing.T) {
	needs.Real(t, needs.Root, needs.RedisServer)
	path := filepath.Join(t.TempDir(), "redis.sock")
	redis := startRedis(t, 22022, "--unixsocket", path)
	await.Until(t, "redis listens at its unix socket", func() bool { // after the port
		c, err := net.Dial("unix", path)
		if err != nil {
			return false
		}
		return c.Close() == nil
	})
	if p, err := Locate(Root{}, Query{Network: "unix", UnixPath: path}); err != nil || p.PID != redis.Process.Pid {
		t.Errorf("got %+v, %v", p, err)
	}
	if p, err := Locate(Root{}, Query{PeerPID: redis.Process.Pid, WantPID: redis.Process.Pid}); err != nil ||
		p.PID != redis.Process.Pid || p.Foreign {
		t.Errorf("got %+v, %v", p, err)
	}
	if _, err := Locate(Root{}, Query{UnixPath: path + "x"}); !errors.Is(err, ErrNotHere) {
		t.Errorf("got %v", err)
	}
}

// TestOtherNamespaces: a server in network and PID namespaces of its own, reached through a pair of virtual interfaces,
// is found by our connection; its listen queue and counters are those of its namespace.
func TestOtherNamespaces(t *testing.T) {
	needs.Real(t, needs.Root, needs.RedisServer, needs.NetworkNamespaces)
	holder := start(t, "unshare", "--net", "--pid", "--fork", "--kill-child", "redis-server", "--port", "22023",
		"--bind", "0.0.0.0", "--protected-mode", "no", "--save", "", "--logfile", "/dev/null")
	var pid int
	await.Until(t, "redis in its namespaces", func() bool {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", holder.Process.Pid, holder.Process.Pid))
		if err != nil {
			return false
		}
		_, err = fmt.Sscan(string(b), &pid)
		comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		return err == nil && strings.HasPrefix(string(comm), "redis")
	})
	sh(t, `ip link add sptest0 type veth peer name sptest1 || exit 1
		ip link set sptest1 netns %d; ip addr add 198.51.100.1/30 dev sptest0; ip link set sptest0 up
		nsenter -t %d -n sh -c 'ip addr add 198.51.100.2/30 dev sptest1; ip link set sptest1 up; ip link set lo up'`,
		pid, pid)
	t.Cleanup(func() { sh(t, "ip link del sptest0 2>/dev/null || true") })
	var c net.Conn
	await.Until(t, "connection", func() bool {
		var err error
		c, err = net.DialTimeout("tcp", "198.51.100.2:22023", time.Second)
		return err == nil
	})
	defer c.Close()
	_, _ = fmt.Fprint(c, "PING\r\n")
	_, _ = c.Read(make([]byte, 64))
	for _, q := range []Query{
		{Local: c.LocalAddr().String(), Remote: "198.51.100.2:22023", WantPID: 1},
		{Listen: "198.51.100.2:22023", WantPID: 1},
	} {
		p, err := Locate(Root{}, q)
		if err != nil || p.PID != pid || p.NSPID != 1 || p.Foreign || p.OwnNet {
			t.Fatalf("%+v: got %+v, %v", q, p, err)
		}
		if q.Local == "" {
			continue
		}
		sink := &memory{}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- Watch(ctx, Options{Sink: sink, Node: node, Process: p}) }()
		us := fmt.Sprintf("process:%d", os.Getpid())
		await.Until(t, "our connection is seen", func() bool { _, ok := sink.value(us, "connections"); return ok })
		cancel()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		sink.want(t, node, "listen.backlog", 511)
		sink.want(t, node, "sock.established", 1)
		if v, ok := sink.value(node, "net.PassiveOpens"); !ok || v > 3 {
			t.Errorf("net.PassiveOpens %v: not of the server's namespace", v)
		}
		sink.want(t, us, "connections", 1)
	}
}

// TestAcceptQueue: a stopped server does not accept; the kernel's queue fills and overflows.
func TestAcceptQueue(t *testing.T) {
	needs.Real(t, needs.Root, needs.RedisServer)
	redis := startRedis(t, 22024, "--tcp-backlog", "4")
	sink := watchFor(t, redis.Process.Pid, 22024, func(sink *memory) {
		sh(t, "kill -STOP %d", redis.Process.Pid)
		defer sh(t, "kill -CONT %d", redis.Process.Pid)
		for range 5 {
			c, err := net.DialTimeout("tcp", "127.0.0.1:22024", time.Second)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
		}
		if c, err := net.DialTimeout("tcp", "127.0.0.1:22024", 100*time.Millisecond); err == nil {
			c.Close()
		}
		await.Until(t, "the queue is seen", func() bool { v, _ := sink.value(node, "listen.queue"); return v > 0 })
	})
	full := 0.0
	for _, s := range sink.samples {
		if s.Name == "listen.queue" {
			full = max(full, s.Value)
		}
	}
	if full != 5 {
		t.Errorf("listen.queue %v, want 5", full)
	}
	sink.want(t, node, "listen.backlog", 4)
}

func TestClientsOnThisHost(t *testing.T) {
	needs.Real(t, needs.Root, needs.RedisServer, needs.Benchmark)
	redis := startRedis(t, 22025)
	bench := start(t, "redis-benchmark", "-p", "22025", "-t", "get", "-n", "100000000", "-c", "7", "-q")
	await.Until(t, "connections", func() bool {
		n := 0
		eachSocket(Root{}, redis.Process.Pid, SocketQuery{States: 1 << tcpEstablished, LocalPort: 22025},
			func(*Socket) bool { n++; return true })
		return n >= 7
	})
	subject := fmt.Sprintf("process:%d", bench.Process.Pid)
	sink := watchFor(t, redis.Process.Pid, 22025, func(sink *memory) {
		await.Until(t, "the client is seen at work", func() bool {
			v, _ := sink.value(subject, "busiest.run_share")
			rtt, _ := sink.value(node, "sock.rtt_min_ns")
			return v > 0 && rtt > 0
		})
	})
	sink.want(t, subject, "connections", 7)
	for _, name := range []string{"rss_bytes", "fd.limit", "minflt"} {
		if v, ok := sink.value(subject, name); !ok || v <= 0 {
			t.Errorf("%s %v", name, v)
		}
	}
	for _, s := range sink.samples {
		if s.Subject == subject && s.Name == "busiest.run_share" && s.Value > 1.2 {
			t.Errorf("busiest.run_share %v", s.Value)
		}
	}
}

func TestGone(t *testing.T) {
	needs.Real(t, needs.Root, needs.RedisServer)
	redis := startRedis(t, 22026)
	p, err := Locate(nil, Query{Listen: "127.0.0.1:22026"})
	if err != nil {
		t.Fatal(err)
	}
	sink, ended := &memory{}, make(chan error, 1)
	watch := func() { ended <- Watch(context.Background(), Options{Sink: sink, Node: node, Process: p}) }
	go watch()
	await.Until(t, "the watch has begun", func() bool { _, ok := sink.value(node, "main.delay_ns"); return ok })
	_ = redis.Process.Kill()
	if err := <-ended; !errors.Is(err, ErrGone) {
		t.Errorf("it ended while it was watched: got %v, want %v", err, ErrGone)
	}
	_, _ = redis.Process.Wait() // so that its PID is gone
	if watch(); !errors.Is(<-ended, ErrGone) {
		t.Errorf("it ended before it was watched: no %v", ErrGone)
	}
}
