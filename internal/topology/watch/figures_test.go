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

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
	"slowpath/internal/stats"
	"slowpath/internal/wire/session"
	"slowpath/internal/wire/target"
)

// BenchmarkFigures measures what the documents say of topology watch, with the program itself (SLOWPATH) on clusters of
// three masters and three replicas; scripts/topology-watch runs it. A slot is moved by telling the receiver and the
// giver, nobody else. FIGURES_MOVES single moves, each from calm; FIGURES_ROUNDS rounds of cost.
func BenchmarkFigures(b *testing.B) {
	program := os.Getenv("SLOWPATH")
	if program == "" {
		b.Skip("takes minutes: scripts/topology-watch")
	}
	for _, name := range servers.Known() {
		b.Run(string(name), func(b *testing.B) {
			f := &figures{B: b, program: program, name: name}
			f.start(fleet.Spec{Config: []string{"cluster-node-timeout 5000"}})
			f.commands()
			f.cost()
			f.watch()
			f.moves()
			f.resharding()
			f.failovers()
			f.kill()
		})
	}
}

type figures struct {
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

func (f *figures) say(format string, args ...any) {
	fmt.Printf("%-14s "+format+"\n", append([]any{f.name}, args...)...)
}

func (f *figures) check(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *figures) start(spec fleet.Spec) {
	f.cluster = fleettest.StartCluster(f.B, f.name, 3, 1, spec)
	for _, n := range f.cluster.Nodes {
		reply, err := n.Do(f.Context(), "CLUSTER", "MYID")
		f.check(err)
		f.ids = append(f.ids, reply.(string))
		t, err := target.Parse(n.Addr)
		f.check(err)
		s, _, err := session.Open(f.Context(), t, "figures")
		f.check(err)
		f.Cleanup(func() { s.Close() })
		f.links = append(f.links, s)
	}
}

// commands measures what each command takes of the server's CPU, all included.
func (f *figures) commands() {
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
		before := cpuOf(f.cluster.Nodes[3].PID)
		var err error
		for range calls {
			if _, err = f.links[3].Do(f.Context(), args...); err != nil {
				break
			}
		}
		if err == nil {
			texts = append(texts, fmt.Sprintf("%s %.0f", args[len(args)-1],
				float64(cpuOf(f.cluster.Nodes[3].PID)-before)/calls/1e3))
		}
	}
	f.say("CPU of a replica per call, us: %s", strings.Join(texts, ", "))
}

// cpuOf is the time that a process has been on a CPU (/proc/PID/schedstat of its main thread, ns).
func cpuOf(pid int) time.Duration {
	body, _ := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	var ns int64
	_, _ = fmt.Sscan(string(body), &ns)
	return time.Duration(ns)
}

// watch starts the program.
func (f *figures) watch() {
	f.watcher = exec.Command(f.program, "topology", "watch", f.cluster.Nodes[0].Addr, "--json")
	out, err := f.watcher.StdoutPipe()
	f.check(err)
	notes, err := f.watcher.StderrPipe()
	f.check(err)
	f.check(f.watcher.Start())
	watcher := f.watcher
	f.Cleanup(func() { _ = watcher.Process.Kill(); _ = watcher.Wait() })
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			l := line{at: time.Now()}
			if json.Unmarshal(s.Bytes(), &l) == nil {
				f.mu.Lock()
				f.lines = append(f.lines, l)
				f.mu.Unlock()
			}
		}
	}()
	ready := bufio.NewReader(notes)
	text, err := ready.ReadString('\n')
	f.check(err)
	f.say("%s", strings.TrimSpace(text))
	go func() {
		rest, _ := io.ReadAll(ready)
		f.say("%s", strings.TrimSpace(string(rest)))
	}()
}

func (f *figures) stop() {
	f.check(f.watcher.Process.Signal(syscall.SIGINT))
	_ = f.watcher.Wait()
}

// seen waits for a line and gives when it was read.
func (f *figures) seen(is func(line) bool) time.Time {
	f.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		f.mu.Lock()
		i := slices.IndexFunc(f.lines, is)
		var at time.Time
		if i >= 0 {
			at = f.lines[i].at
			f.lines = slices.Delete(f.lines, i, i+1)
		}
		f.mu.Unlock()
		if i >= 0 {
			return at
		}
	}
	f.Fatal("a change was not seen in a minute")
	return time.Time{}
}

func (f *figures) move(slot, from, to int) time.Time {
	s := strconv.Itoa(slot)
	do := func(node int, args ...string) {
		_, err := f.cluster.Nodes[node].Do(f.Context(), append([]string{"CLUSTER", "SETSLOT", s}, args...)...)
		f.check(err)
	}
	do(to, "IMPORTING", f.ids[from])
	do(from, "MIGRATING", f.ids[to])
	do(to, "NODE", f.ids[to])
	at := time.Now() // it has moved
	do(from, "NODE", f.ids[to])
	return at
}

func (f *figures) moves() {
	var delays []time.Duration
	for i := range number("FIGURES_MOVES", 8) {
		time.Sleep(lively + rand.N(time.Second)) // from calm, and at any time of its beat
		slot := 50 + i
		at := f.move(slot, 0, 1)
		delays = append(delays, f.seen(func(l line) bool {
			return l.Kind == string(SlotMoved) &&
				l.Slots == strconv.Itoa(slot)
		}).Sub(at))
	}
	f.report("single slot move, from calm", delays)
}

func (f *figures) resharding() {
	const slots = 500
	times := map[int]time.Time{}
	for i := range slots {
		slot := 6000 + i
		times[slot] = f.move(slot, 1, 2)
	}
	took := times[6000+slots-1].Sub(times[6000])
	var delays []time.Duration
	for len(delays) < slots {
		var l line
		at := f.seen(func(got line) bool { l = got; return got.Kind == string(SlotMoved) })
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
	f.report(fmt.Sprintf("resharding of %d slots in %v", slots, took.Round(time.Millisecond)), delays)
}

func (f *figures) report(what string, delays []time.Duration) {
	slices.Sort(delays)
	f.say("%s: seen after median %v, max %v (n %d)", what, stats.MedianUpper(delays).Round(100*time.Microsecond),
		delays[len(delays)-1].Round(100*time.Microsecond), len(delays))
}

// promoted waits until the node says that it is a master.
func (f *figures) promoted(node int) time.Time {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		v, err := f.links[node].Do(f.Context(), "INFO", "replication")
		f.check(err)
		if strings.Contains(v.Text(), "role:master") {
			return time.Now()
		}
	}
	f.Fatal("no promotion in a minute")
	return time.Time{}
}

func (f *figures) failovers() {
	var delays []time.Duration
	for i := range 4 {
		time.Sleep(lively)
		node := 3 // and back
		if i%2 == 1 {
			node = 0
		}
		for !f.inSync(node) {
			time.Sleep(100 * time.Millisecond)
		}
		_, err := f.cluster.Nodes[node].Do(f.Context(), "CLUSTER", "FAILOVER")
		f.check(err)
		at := f.promoted(node)
		delays = append(delays, f.seen(func(l line) bool {
			return l.Kind == string(FailoverEnded) &&
				l.Node == f.ids[node]
		}).Sub(at))
	}
	f.report("CLUSTER FAILOVER, after the replica is a master", delays)
}

func (f *figures) inSync(node int) bool {
	v, err := f.links[node].Do(f.Context(), "INFO", "replication")
	f.check(err)
	return strings.Contains(v.Text(), "master_link_status:up")
}

func (f *figures) kill() {
	time.Sleep(lively)
	at := time.Now()
	f.check(f.cluster.Nodes[1].Kill(context.WithoutCancel(f.Context())))
	promoted := f.promoted(4)
	started := f.seen(func(l line) bool { return l.Kind == string(FailoverStarted) && l.Node == f.ids[1] })
	ended := f.seen(func(l line) bool { return l.Kind == string(FailoverEnded) && l.Node == f.ids[4] })
	f.say("kill -9 of a master, cluster-node-timeout 5 s: start told after %v, promotion after %v, its end told %v "+
		"after that",
		started.Sub(at).Round(time.Millisecond), promoted.Sub(at).Round(time.Millisecond),
		ended.Sub(promoted).Round(100*time.Microsecond))
	f.stop()
}
