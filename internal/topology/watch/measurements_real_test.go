package watch

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
	"slowpath/internal/wire/session"
	"slowpath/internal/wire/target"
)

// BenchmarkWatch measures the numbers that the documents give for topology watch, with the program itself (SLOWPATH) on
// clusters of three masters and three replicas; scripts/topology-watch runs it. A slot is moved by telling the receiver
// and the giver, nobody else. WATCH_MOVES single moves, each from idle polling; WATCH_ROUNDS rounds of cost.
func BenchmarkWatch(b *testing.B) {
	needs.Real(b, needs.RedisServer)
	program := os.Getenv("SLOWPATH")
	if program == "" {
		b.Skip("takes minutes: scripts/topology-watch")
	}
	for _, name := range servers.Known() {
		b.Run(string(name), func(b *testing.B) {
			m := &measurements{B: b, program: program, name: name}
			m.start(fleet.Spec{Config: []string{"cluster-node-timeout 5000"}})
			m.commands()
			m.cost()
			m.watch()
			m.moves()
			m.resharding()
			m.failovers()
			m.kill()
		})
	}
}

type measurements struct {
	*testing.B
	program string
	name    servers.Name
	cluster *fleet.Cluster
	ids     []string
	links   []*session.Session // to each node
	watcher *exec.Cmd
	mu      sync.Mutex
	lines   []line
}

// line is one event of the program, and when it was read.
type line struct {
	at                    time.Time
	Kind, Slots, To, Node string
}

func number(name string, usual int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return usual
}

func (m *measurements) print(format string, args ...any) {
	fmt.Printf("%-14s "+format+"\n", append([]any{m.name}, args...)...)
}

func (m *measurements) check(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

func (m *measurements) start(spec fleet.Spec) {
	m.cluster = fleettest.StartCluster(m.B, m.name, 3, 1, spec)
	for _, n := range m.cluster.Nodes {
		reply, err := n.Do(m.Context(), "CLUSTER", "MYID")
		m.check(err)
		m.ids = append(m.ids, reply.(string))
		t, err := target.Parse(n.Addr)
		m.check(err)
		s, _, err := session.Open(m.Context(), t, "measurements")
		m.check(err)
		m.Cleanup(func() { s.Close() })
		m.links = append(m.links, s)
	}
}

// commands measures what each command takes of the server's CPU, all included.
func (m *measurements) commands() {
	const calls = 2000
	var texts []string
	for _, args := range [][]string{
		{"PING"},
		{"CLUSTER", "INFO"},
		{"CLUSTER", "NODES"},
		{"CLUSTER", "SLOTS"},
		{"CLUSTER", "SHARDS"},
		{"CLUSTER", "LINKS"},
	} {
		before := cpuOf(m.cluster.Nodes[3].PID)
		var err error
		for range calls {
			if _, err = m.links[3].Do(m.Context(), args...); err != nil {
				break
			}
		}
		if err == nil {
			texts = append(texts, fmt.Sprintf("%s %.0f", args[len(args)-1],
				float64(cpuOf(m.cluster.Nodes[3].PID)-before)/calls/1e3))
		}
	}
	m.print("CPU of a replica per call, us: %s", strings.Join(texts, ", "))
}

// cpuOf is the time that a process has been on a CPU (/proc/PID/schedstat of its main thread, ns).
func cpuOf(pid int) time.Duration {
	body, _ := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	var ns int64
	_, _ = fmt.Sscan(string(body), &ns)
	return time.Duration(ns)
}

// watch starts the program.
func (m *measurements) watch() {
	m.watcher = exec.Command(m.program, "topology", "watch", m.cluster.Nodes[0].Addr, "--json")
	out, err := m.watcher.StdoutPipe()
	m.check(err)
	notes, err := m.watcher.StderrPipe()
	m.check(err)
	m.check(m.watcher.Start())
	watcher := m.watcher
	m.Cleanup(func() { _ = watcher.Process.Kill(); _ = watcher.Wait() })
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			l := line{at: time.Now()}
			if json.Unmarshal(s.Bytes(), &l) == nil {
				m.mu.Lock()
				m.lines = append(m.lines, l)
				m.mu.Unlock()
			}
		}
	}()
	ready := bufio.NewReader(notes)
	text, err := ready.ReadString('\n')
	m.check(err)
	m.print("%s", strings.TrimSpace(text))
	go func() {
		rest, _ := io.ReadAll(ready)
		m.print("%s", strings.TrimSpace(string(rest)))
	}()
}

func (m *measurements) stop() {
	m.check(m.watcher.Process.Signal(syscall.SIGINT))
	_ = m.watcher.Wait()
}

// seen waits for a line and gives when it was read.
func (m *measurements) awaitLine(is func(line) bool) (at time.Time) {
	m.Helper()
	await.Until(m, "a change is seen", func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		i := slices.IndexFunc(m.lines, is)
		if i >= 0 {
			at = m.lines[i].at
			m.lines = slices.Delete(m.lines, i, i+1)
		}
		return i >= 0
	})
	return at
}

func (m *measurements) move(slot, from, to int) time.Time {
	s := strconv.Itoa(slot)
	do := func(node int, args ...string) {
		_, err := m.cluster.Nodes[node].Do(m.Context(), append([]string{"CLUSTER", "SETSLOT", s}, args...)...)
		m.check(err)
	}
	do(to, "IMPORTING", m.ids[from])
	do(from, "MIGRATING", m.ids[to])
	do(to, "NODE", m.ids[to])
	at := time.Now() // it has moved
	do(from, "NODE", m.ids[to])
	return at
}

func (m *measurements) moves() {
	var delays []time.Duration
	for i := range number("WATCH_MOVES", 8) {
		await.Pass(activeFor + rand.N(time.Second)) // from idle polling, at a random time between two polls
		slot := 50 + i
		at := m.move(slot, 0, 1)
		delays = append(delays, m.awaitLine(func(l line) bool {
			return l.Kind == string(SlotMoved) &&
				l.Slots == strconv.Itoa(slot)
		}).Sub(at))
	}
	m.report("single slot move, from idle polling", delays)
}

func (m *measurements) resharding() {
	const slots = 500
	times := map[int]time.Time{}
	for i := range slots {
		slot := 6000 + i
		times[slot] = m.move(slot, 1, 2)
	}
	took := times[6000+slots-1].Sub(times[6000])
	var delays []time.Duration
	for len(delays) < slots {
		var l line
		at := m.awaitLine(func(got line) bool { l = got; return got.Kind == string(SlotMoved) })
		for _, r := range strings.Split(l.Slots, ",") {
			from, to, isRange := strings.Cut(r, "-")
			if !isRange {
				to = from
			}
			first, _ := strconv.Atoi(from)
			last, _ := strconv.Atoi(to)
			for slot := first; slot <= last; slot++ {
				delays = append(delays, at.Sub(times[slot]))
			}
		}
	}
	m.report(fmt.Sprintf("resharding of %d slots in %v", slots, took.Round(time.Millisecond)), delays)
}

func (m *measurements) report(what string, delays []time.Duration) {
	slices.Sort(delays)
	m.print("%s: seen after median %v, max %v (n %d)", what, delays[len(delays)/2].Round(100*time.Microsecond),
		delays[len(delays)-1].Round(100*time.Microsecond), len(delays))
}

// promoted waits until the node says that it is a master.
func (m *measurements) promoted(node int) time.Time {
	await.Until(m, "a promotion", func() bool { return m.replicationSays(node, "role:master") })
	return time.Now()
}

func (m *measurements) failovers() {
	var delays []time.Duration
	for i := range 4 {
		await.Pass(activeFor)
		node := 3 // and back
		if i%2 == 1 {
			node = 0
		}
		await.Until(m, "a replica in sync", func() bool { return m.replicationSays(node, "master_link_status:up") })
		_, err := m.cluster.Nodes[node].Do(m.Context(), "CLUSTER", "FAILOVER")
		m.check(err)
		at := m.promoted(node)
		delays = append(delays, m.awaitLine(func(l line) bool {
			return l.Kind == string(FailoverEnded) &&
				l.Node == m.ids[node]
		}).Sub(at))
	}
	m.report("CLUSTER FAILOVER, after the replica is a master", delays)
}

func (m *measurements) replicationSays(node int, text string) bool {
	v, err := m.links[node].Do(m.Context(), "INFO", "replication")
	m.check(err)
	return strings.Contains(v.Text(), text)
}

func (m *measurements) kill() {
	await.Pass(activeFor)
	at := time.Now()
	m.check(m.cluster.Nodes[1].Kill(context.WithoutCancel(m.Context())))
	promoted := m.promoted(4)
	started := m.awaitLine(func(l line) bool { return l.Kind == string(FailoverStarted) && l.Node == m.ids[1] })
	endedAt := m.awaitLine(func(l line) bool { return l.Kind == string(FailoverEnded) && l.Node == m.ids[4] })
	m.print("kill -9 of a master, cluster-node-timeout 5 s: start seen after %v, promotion after %v, its end seen %v "+
		"after that",
		started.Sub(at).Round(time.Millisecond), promoted.Sub(at).Round(time.Millisecond),
		endedAt.Sub(promoted).Round(100*time.Microsecond))
	m.stop()
}
