package main

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"slowpath/internal/cli"
	"slowpath/internal/clock"
	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/recording"
	"slowpath/internal/recording/join"
	"slowpath/internal/source/host"
	"slowpath/internal/source/tap"
	"slowpath/internal/stats"
	"slowpath/internal/trace"
)

// hosts are two network namespaces that stand for two hosts: a server in the one, its clients in the other, and a slow
// way between.
type hosts struct {
	server, client string
	address        netip.AddrPort
}

func newHosts(t *testing.T) hosts {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root, for network namespaces")
	}
	if err := kernelSource(); err != nil {
		t.Skip("needs the tap: ", err)
	}
	for _, tool := range []string{"ip", "tc", "redis-server", "redis-cli"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("needs ", tool)
		}
	}
	client := fmt.Sprintf("slowpath-join-%dc", os.Getpid())
	// it may not have been made
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", client).Run() })
	run(t, "ip netns add "+client)
	return serverOf(t, client, 0)
}

// run runs commands that make network namespaces.
func run(t *testing.T, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if out, err := exec.Command(strings.Fields(line)[0], strings.Fields(line)[1:]...).CombinedOutput(); err != nil {
			t.Skipf("needs network namespaces: %s: %v: %s", line, err, out)
		}
	}
}

// serverOf makes one of several servers, of which the one host of clients has a network with each.
func serverOf(t *testing.T, client string, nth int) hosts {
	t.Helper()
	net := func(at int) string { return fmt.Sprint("198.19.255.", 4*nth+at) }
	h := hosts{
		server: fmt.Sprintf("slowpath-join-%ds%d", os.Getpid(), nth), client: client,
		// RFC 2544; these namespaces have no way out. The programs go by the port: another run of this test has
		// another.
		address: netip.AddrPortFrom(netip.MustParseAddr(net(2)), uint16(20_000+os.Getpid()%10_000)),
	}
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", h.server).Run() })
	here := fmt.Sprint("here", nth)
	run(t, "ip netns add "+h.server,
		"ip -n "+h.client+" link add "+here+" type veth peer name there netns "+h.server,
		"ip -n "+h.client+" addr add "+net(1)+"/30 dev "+here, "ip -n "+h.client+" link set "+here+" up",
		"ip -n "+h.server+" addr add "+net(2)+"/30 dev there", "ip -n "+h.server+" link set there up",
		"ip netns exec "+h.server+" tc qdisc add dev there root tbf rate 20mbit burst 32kb latency 1s")
	c := exec.Command("ip", "netns", "exec", h.server, "redis-server", "--port", fmt.Sprint(h.address.Port()), "--bind",
		h.address.Addr().String(), "--protected-mode", "no",
		"--save", "", "--dir", t.TempDir(), "--enable-debug-command", "yes")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	await.Until(t, "redis-server answers", func() bool { return strings.Contains(h.calls(t, "PING"), "PONG") })
	return h
}

// calls makes calls one after the other, on one connection.
func (h hosts) calls(t *testing.T, lines ...string) string {
	t.Helper()
	c := exec.Command("ip", "netns", "exec", h.client, "redis-cli", "-h", h.address.Addr().String(), "-p",
		fmt.Sprint(h.address.Port()))
	c.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	out, _ := c.CombinedOutput() // the server may not be there yet
	return string(out)
}

// pool gives a function that makes a slow call on a connection that stays.
func (h hosts) pool(t *testing.T) func() {
	t.Helper()
	c := exec.Command("ip", "netns", "exec", h.client, "redis-cli", "-h", h.address.Addr().String(), "-p",
		fmt.Sprint(h.address.Port()))
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); _ = c.Wait() })
	reply := bufio.NewReader(out)
	call := func() {
		if _, err := io.WriteString(in, "GET big\n"); err != nil {
			t.Error(err)
		}
		if _, err := reply.ReadString('\n'); err != nil {
			t.Error(err)
		}
	}
	call()
	return call
}

// watch records what one end of connections sees, or both, until the function that it gives is called.
func (h hosts) watch(t *testing.T, path, side string, slow time.Duration) (end func()) {
	t.Helper()
	return watchNodes(t, path, side, slow, []tap.Node{{Address: h.address.String(), Remote: h.address}})
}

func watchNodes(t *testing.T, path, side string, slow time.Duration, nodes []tap.Node) (end func()) {
	t.Helper()
	w, err := recording.Create(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	clk := clock.New()
	source, err := tap.Open(tap.Options{Clock: clk, Files: host.Root{}, Sink: w, Nodes: nodes, Slow: slow, Side: side})
	if err != nil {
		t.Fatal(err)
	}
	trace.Begin(w, clk.Now(), version, slow, nodes)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- source.Run(ctx) }()
	return func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		trace.End(w, clk.Now())
		if err := source.Close(); err != nil {
			t.Error(err)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
}

// shifted is a copy of a recording as a host would have made it whose clock is wrong.
func shifted(t *testing.T, path string, by time.Duration) string {
	t.Helper()
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), filepath.Base(path))
	if err := os.WriteFile(to, body, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+to)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, set := range []string{
		"call SET intended_ns = intended_ns + $1, start_ns = start_ns + $1, end_ns = end_ns " +
			"+ $1", "segment SET from_ns = from_ns + $1, to_ns = to_ns + $1",
		"sample SET time_ns = time_ns + $1", "event SET time_ns = time_ns + $1", "snapshot SET time_ns = time_ns + $1",
		"histogram SET second = second + $1 / 1000000000",
		"meta SET value = value + $1 WHERE key IN ('start_ns', 'end_ns')",
	} {
		if _, err := db.Exec("UPDATE "+set, by.Nanoseconds()); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// TestTwoHosts: a server and a client on two "hosts", each recorded from its own end alone, give together what a watch
// of both ends by one clock gives: the network's share of each call. The clocks of the two are hours apart.
func TestTwoHosts(t *testing.T) {
	needs.Real(t, needs.Root, needs.BPF, needs.NetworkNamespaces, needs.RedisServer, needs.RedisCLI)
	h := newHosts(t)
	dir := t.TempDir()
	h.calls(t, "SET big "+strings.Repeat("v", 60_000))
	pooled := h.pool(t) // its connection is there before the watch
	both, server, client := filepath.Join(dir, "both.slowpath"), filepath.Join(dir, "server.slowpath"),
		filepath.Join(dir, "client.slowpath")
	coarse := filepath.Join(dir, "coarse.slowpath")
	ends := []func(){
		h.watch(t, both, "", time.Microsecond), h.watch(t, server, recording.Server, time.Microsecond),
		h.watch(t, coarse, recording.Server, tap.DefaultSlow), h.watch(t, client, recording.Client, time.Microsecond),
	}
	script := []string{"PING"}
	for range 8 {
		// slow on the way, slow at the server, not slow
		script = append(script, "GET big", "DEBUG SLEEP 0.02", "PING", "GET small")
	}
	h.calls(t, script...)
	for range 15 { // a connection tells how it does once per second
		pooled()
		await.Pass(100 * time.Millisecond)
	}
	await.Pass(200 * time.Millisecond) // the last reports lie in the ring for 50 ms
	for _, end := range ends {
		end()
	}
	truth := open(t, both)
	known := map[uint32]recording.Call{}
	for _, c := range truth.Calls {
		if c.Side == "both" {
			known[c.Seq] = c
		}
	}
	if len(known) < len(script)-1 {
		t.Fatalf("%d calls seen from both ends, %d made", len(known), len(script))
	}
	boundOf(t, open(t, shifted(t, client, time.Hour)), open(t, coarse), truth, known)
	for _, by := range []time.Duration{0, 5 * time.Hour, -7*time.Hour - 3*time.Millisecond} {
		paths := []string{shifted(t, client, by), server}
		rec, results, err := join.All([]*recording.Recording{open(t, paths[0]), open(t, paths[1])}, true)
		if err != nil {
			t.Fatal(err)
		}
		r := results[0]
		if r.Joined < len(known)*9/10 || r.Ambiguous > 0 || r.ClockUnknown {
			t.Errorf("%+v of %d", r, len(known))
		}
		if off := r.OffsetNs + int64(by); max(off, -off) > r.OffsetErrorNs+int64(time.Millisecond) {
			t.Errorf("the clocks are said to be %d ns apart (within %d), they are %d", r.OffsetNs, r.OffsetErrorNs, -by)
		}
		var apart []int64
		way := int64(0)
		for _, c := range rec.Calls {
			was, ok := known[c.Seq]
			if c.Side != "both" || !ok {
				continue
			}
			got, want := spentOnWay(rec, c), spentOnWay(truth, was)
			apart = append(apart, max(got-want, want-got))
			if c.Op == "GET" && c.ReplyBytes > 60_000 {
				way = max(way, got)
			}
		}
		slices.Sort(apart)
		t.Logf("%v: %d joined, the network's share differs by %d ns at the median, %d at most; %s", by, len(apart),
			stats.MedianUpper(apart), apart[len(apart)-1], r.Clocks())
		// Three sets of programs look at the same event one after the other; a sample of microseconds each.
		if m := stats.MedianUpper(apart); m > 100_000 {
			t.Errorf("the network's share differs by %d ns from what one clock saw", m)
		}
		if wire := int64(60_000-32_000) * 8 * 1e9 / 20e6; way < wire { // what the bucket of 32 kB does not hold
			t.Errorf("a reply that needed %d ns on the wire spent %d there", wire, way)
		}
		seenByCommands(t, paths)
	}
}

// boundOf: with the usual threshold the server's host has only what was slow there. Of the others it is known that the
// server had less.
func boundOf(t *testing.T, client, server, truth *recording.Recording, known map[uint32]recording.Call) {
	t.Helper()
	rec, results, err := join.All([]*recording.Recording{client, server}, false)
	if err != nil {
		t.Fatal(err)
	}
	if r := results[0]; r.Joined < 8 || r.Fast < 16 || r.UnknownConn > 0 { // the eight DEBUG SLEEP; GET and PING
		t.Errorf("%+v", r)
	}
	pooled := 0 // calls on a connection that the server's host did not see open
	for _, s := range server.Snapshots {
		for _, c := range rec.Calls {
			if s.Name == recording.SnapshotServed && s.Subject == recording.ConnPrefix+c.Conn &&
				c.Side == recording.Client {
				pooled++
			}
		}
	}
	if pooled == 0 {
		t.Error("nothing is known of calls on a connection that was there before")
	}
	bounded := 0
	for _, c := range rec.Calls {
		was, ok := known[c.Seq]
		if !ok || c.Side != recording.Client || c.EndNs-c.IntendedNs < 10e6 {
			continue
		}
		bounded++
		got, want := spentOnWay(rec, c), spentOnWay(truth, was)
		// once more for what came between two sets of programs
		if got > want+int64(tap.DefaultSlow) || got < want-2*int64(tap.DefaultSlow) {
			t.Errorf("the network is given %d ns of %s; it had %d, and the server less than %v", got, c.Op, want,
				tap.DefaultSlow)
		}
	}
	if bounded == 0 {
		t.Error("no reply was slow on the way alone")
	}
}

// spentOnWay is a call's time between its two hosts: on the network, and in the client's send, of which the way is a
// part.
func spentOnWay(r *recording.Recording, c recording.Call) (ns int64) {
	inServer := false
	for i, s := range r.SegmentsOf(c.ID) {
		inServer = inServer || s.Actor == recording.Server
		if s.Actor == recording.Network || i == 0 && s.Actor == recording.Client && s.State == recording.Send {
			ns += s.ToNs - s.FromNs
		}
	}
	return ns
}

// seenByCommands: doctor and trace take the two files.
func seenByCommands(t *testing.T, paths []string) {
	t.Helper()
	var out, errs bytes.Buffer
	a := appOn(&out, &errs)
	if code := a.execute(t.Context(), append([]string{
		"trace", "--json", "--command", "GET", "--segment",
		"network.back>5ms",
	}, paths...)); code != 0 || !strings.Contains(errs.String(),
		"are joined with their server's end") {
		t.Errorf("trace: %d, %s", code, &errs)
	}
	var c trace.Call
	if err := json.Unmarshal([]byte(strings.SplitN(out.String(), "\n", 2)[0]), &c); err != nil || c.Side != "both" ||
		c.ReplyBytes < 60_000 {
		t.Errorf("trace: %+v, %v", c, err)
	}
	out.Reset()
	a = appOn(&out, &errs)
	if code := a.execute(t.Context(), append([]string{"doctor"}, paths...)); code != cli.ExitFindings &&
		code != cli.ExitClean ||
		!strings.Contains(out.String(), "network") {
		t.Errorf("doctor: %d, %s%s", code, &out, &errs)
	}
}

func open(t *testing.T, path string) *recording.Recording {
	t.Helper()
	r, err := recording.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
