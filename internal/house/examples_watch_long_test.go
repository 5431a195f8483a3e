package house

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"slowpath/internal/house/needs"
	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
	"slowpath/internal/topology/watch"
	"slowpath/internal/wire/target"
)

// TestWatchExamples: the examples in Python and Java enter slots into their map that a watch publishes, so that their
// calls to them get no MOVED afterwards. All speak RESP3, so that the messages come as push frames.
func TestWatchExamples(t *testing.T) {
	needs.Long(t, needs.Python, needs.Command("mvn", "maven"))
	for library, program := range map[clients.Name]string{
		clients.Jedis:    "examples/topology-watch-jedis/TopologyWatch.java",
		clients.RedisPy:  "examples/topology-watch-redis-py/topology_watch.py",
		clients.Lettuce6: "examples/topology-watch-lettuce/TopologyWatch.java",
		clients.Lettuce7: "examples/topology-watch-lettuce/TopologyWatch.java",
	} {
		t.Run(string(library), func(t *testing.T) {
			t.Parallel() // most of it is seconds in which calls are made
			watchesMoves(t, launcher(t, library), program)
		})
	}
}

func watchesMoves(t *testing.T, launcher []string, program string) {
	c := fleettest.StartCluster(t, servers.Redis7015, 3, 1, fleet.Spec{
		ACL: []string{"user watch on >pw ~* &* +@all"},
	})
	publish(t, c)
	lines := runExample(t, slices.Concat(launcher, []string{program, c.Nodes[0].Addr}))
	<-lines
	if list := subscribers(t, c); len(list) != 1 || !strings.Contains(list[0], " resp=3") {
		t.Errorf("subscribers: %q", list)
	}
	for _, n := range c.Nodes { // so that the example cannot read the map again after a MOVED
		reply(t, n, "ACL", "SETUSER", "default", "-cluster|slots", "-cluster|nodes", "-cluster|shards")
	}
	const moved = 40
	from, to := reply(t, c.Nodes[0], "CLUSTER", "MYID"), reply(t, c.Nodes[1], "CLUSTER", "MYID")
	for slot := range moved {
		reply(t, c.Nodes[1], "CLUSTER", "SETSLOT", fmt.Sprint(slot), "IMPORTING", from)
		reply(t, c.Nodes[1], "CLUSTER", "SETSLOT", fmt.Sprint(slot), "NODE", to)
	}
	want := fmt.Sprintf(" %d changes by message", moved)
	for line := range lines {
		if strings.Contains(line, want) {
			break
		}
	}
	redirected := countMoved(t, c)
	var last string
	for range 8 { // seconds: thousands of calls, to most of 10 000 keys
		last = <-lines
	}
	if again := countMoved(t, c); again != redirected {
		t.Errorf("%d MOVED after the messages", again-redirected)
	}
	if !strings.Contains(last, " 0 failed;") || !strings.Contains(last, want) {
		t.Error(last)
	}
}

// launcher is how the lab starts a program with a library, without the program.
func launcher(t *testing.T, library clients.Name) []string {
	t.Helper()
	cache, err := clients.OpenCache("")
	if err != nil {
		t.Fatal(err)
	}
	p, err := cache.Get(t.Context(), library, t.Output())
	if errors.Is(err, clients.ErrTool) || errors.Is(err, clients.ErrRegistry) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p.Argv[:len(p.Argv)-1]
}

// publish publishes the changes of a cluster until the test ends.
func publish(t *testing.T, c *fleet.Cluster) {
	t.Helper()
	at, err := target.Parse("redis://watch:pw@" + c.Nodes[0].Addr)
	if err != nil {
		t.Fatal(err)
	}
	ready, ended := make(chan bool, 1), make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		_, err := watch.Watch(ctx, watch.Options{
			Seeds: []target.Target{at}, PerSecond: 100, Publish: true,
			Ready: func(watch.Ready) { ready <- true }, Event: func(watch.Event) error { return nil },
			Note: func(string) {},
		})
		ended <- err
	}()
	t.Cleanup(func() { stop(); <-ended })
	select {
	case <-ready:
	case err := <-ended:
		ended <- err
		t.Fatal(err)
	}
}

// runExample runs the program until the test ends, and gives its lines.
func runExample(t *testing.T, argv []string) <-chan string {
	t.Helper()
	c := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	c.Stderr = t.Output()
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := make(chan string)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			select {
			case lines <- s.Text():
			case <-time.After(time.Minute): // nobody reads them any more
				return
			}
		}
	}()
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	return lines
}

func reply(t *testing.T, n *fleet.Instance, args ...string) string {
	t.Helper()
	r, err := n.Do(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(r)
}

// subscribers are the lines of CLIENT LIST of connections that listen to both channels.
func subscribers(t *testing.T, c *fleet.Cluster) (out []string) {
	t.Helper()
	for _, n := range c.Nodes {
		for line := range strings.Lines(reply(t, n, "CLIENT", "LIST")) {
			if strings.Contains(line, " sub=2 ") {
				out = append(out, line)
			}
		}
	}
	return out
}

// countMoved sums up the MOVED replies of all nodes.
func countMoved(t *testing.T, c *fleet.Cluster) (sum int) {
	t.Helper()
	for _, n := range c.Nodes {
		if _, rest, ok := strings.Cut(reply(t, n, "INFO", "errorstats"), "errorstat_MOVED:count="); ok {
			count := 0
			if _, err := fmt.Sscan(strings.Fields(rest)[0], &count); err != nil {
				t.Fatal(err)
			}
			sum += count
		}
	}
	return sum
}
