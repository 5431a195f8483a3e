package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"slowpath/internal/cli"
	"slowpath/internal/diagnose/corpus"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/load/bench"
	"slowpath/internal/load/engine"
	"slowpath/internal/recording"
	"slowpath/internal/report"
	"slowpath/internal/report/layout"
	"slowpath/internal/source"
	"slowpath/internal/source/server"
	"slowpath/internal/wire/cluster"
	"slowpath/internal/wire/target"
	"slowpath/internal/wire/wiretest"
)

// drawnMap is a map of a cluster as a server may state it.
type drawnMap struct {
	nodes string // the text of CLUSTER NODES
	slots string // the reply to CLUSTER SLOTS
}

// oddAddresses are what a map has for nodes that are nowhere.
var oddAddresses = []string{
	"192.0.2.1:6379", "192.0.2.2:6379", "10.1.2.3:65535", "2001:db8::1:6379", ":6379", "192.0.2.1:0", ":0", "?:6379",
}

// drawMap draws a map with any number of nodes, whatever they say of themselves, at these addresses or at odd ones.
func drawMap(t *rapid.T, addresses []string) drawnMap {
	id := rapid.Map(rapid.SampledFrom([]string{"a", "b", "c", "d", "0"}), func(s string) string {
		return strings.Repeat(s, 40) // of few, so that nodes have the same
	})
	slot := rapid.IntRange(0, cluster.SlotCount-1)
	var m drawnMap
	entries := 0
	for range rapid.IntRange(0, 6).Draw(t, "nodes") {
		me, address := id.Draw(t, "id"), rapid.SampledFrom(append(addresses, oddAddresses...)).Draw(t, "address")
		flags := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{
			"myself", "master", "slave", "fail", "fail?", "handshake", "noaddr", "nofailover",
		}), 1, 4, rapid.ID).Draw(t, "flags")
		m.nodes += fmt.Sprintf("%s %s@%d %s %s 0 0 %d connected", me, address,
			rapid.SampledFrom([]int{0, 16379}).Draw(t, "bus port"), strings.Join(flags, ","),
			rapid.OneOf(rapid.Just("-"), id).Draw(t, "primary"),
			rapid.OneOf(rapid.Uint64Range(0, 3), rapid.Uint64()).Draw(t, "epoch"))
		for range rapid.IntRange(0, 3).Draw(t, "ranges") {
			from, to := 0, cluster.SlotCount-1
			if !rapid.Bool().Draw(t, "all slots") {
				from = slot.Draw(t, "from")
				to = rapid.OneOf(rapid.Just(from), rapid.IntRange(from, to)).Draw(t, "to")
			}
			m.nodes += fmt.Sprintf(" %d-%d", from, to)
			colon := strings.LastIndexByte(address, ':')
			m.slots += fmt.Sprintf("*3\r\n:%d\r\n:%d\r\n*3\r\n+%s\r\n:%s\r\n+%s\r\n", from, to, address[:colon],
				address[colon+1:], me)
			entries++
		}
		if rapid.Bool().Draw(t, "moves") {
			m.nodes += fmt.Sprintf(" [%d-%s-%s]", slot.Draw(t, "moving"),
				rapid.SampledFrom([]string{">", "<"}).Draw(t, "way"), id.Draw(t, "other end"))
		}
		m.nodes += "\n"
	}
	m.slots = fmt.Sprintf("*%d\r\n%s", entries, m.slots)
	return m
}

// mapOf is a map of so many masters, each with its slots.
func mapOf(nodes int) drawnMap {
	var text strings.Builder
	for i := range nodes {
		flags := "master"
		if i == 0 {
			flags = "myself,master"
		}
		fmt.Fprintf(&text, "%040x 10.0.%d.%d:6379@16379 %s - 0 0 %d connected %d-%d\n", i, i/250, i%250, flags, i,
			i*cluster.SlotCount/nodes, (i+1)*cluster.SlotCount/nodes-1)
	}
	return drawnMap{nodes: text.String(), slots: "*0\r\n"}
}

const infoOfNode = "redis_version:7.0.15\r\nredis_mode:cluster\r\ncluster_enabled:1\r\nrole:master\r\nrun_id:1\r\n" +
	"process_id:1\r\ntcp_port:6379\r\nconnected_clients:1\r\nused_cpu_user:1\r\n" +
	"cmdstat_cluster|nodes:calls=3,usec=27,usec_per_call=9.00\r\n"

// nodeWith answers as a node of a cluster does, with one of the maps after the other.
func nodeWith(maps []drawnMap, onlySlots bool) func(command string) string {
	bulk := func(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }
	var asked atomic.Int64
	next := func() drawnMap { return maps[int(asked.Add(1))%len(maps)] }
	return func(command string) string {
		switch {
		case command == "PING":
			return "+PONG\r\n"
		case command == "CLUSTER NODES" && !onlySlots:
			return bulk(next().nodes)
		case command == "CLUSTER SLOTS":
			return next().slots
		case command == "CLUSTER INFO":
			return bulk("cluster_state:ok\r\n")
		case strings.HasPrefix(command, "INFO"):
			return bulk(infoOfNode)
		case command == "CLIENT LIST":
			return bulk("id=1 addr=192.0.2.9:5 age=9 idle=0 flags=N cmd=cluster|nodes\n")
		case strings.HasPrefix(command, "CLIENT"):
			return "+OK\r\n"
		}
		return "-ERR unknown command\r\n"
	}
}

// madeOfMap is what is made of a map: command lines, and what a command does that needs real sockets or time.
var madeOfMap = map[string]func(ctx context.Context, at target.Target) error{
	"topology watch":    commandLine("topology watch %s --for 7s --json", `watching [1-9]|and [1-9]`),
	"topology":          commandLine("topology %s --for 1s --json", `"views": \[\n`),
	"topology as text":  commandLine("topology %s --for 0 --all --nodes 80", `.`),
	"topology simulate": commandLine("topology simulate %s --policy jedis --clients 2 --slots 2 --for 20s", `.`),
	"doctor": func(ctx context.Context, at target.Target) error {
		_, err := source.Greet(ctx, at, source.DefaultTimeout)
		return err
	},
	"bench": func(ctx context.Context, at target.Target) error {
		masters, err := engine.Masters(ctx, engine.Options{Target: at, Cluster: true})
		switch {
		case errors.Is(err, engine.ErrTopology):
			return cli.Usage(err) // as bench does
		case err == nil && len(masters) == 0:
			return errors.New("no master and no error")
		}
		return err
	},
	"keys of bench": func(ctx context.Context, at target.Target) error {
		d, err := bench.OpenData(ctx, at, true, nil)
		if err != nil {
			return err
		}
		defer d.Close()
		for _, addr := range d.Addrs() {
			if host, port, err := net.SplitHostPort(addr); err != nil || host == "" || port == "0" {
				return fmt.Errorf("a master at %q", addr)
			}
		}
		return nil
	},
}

// commandLine runs slowpath, which must print at least one node, or give an error that says that it does not.
func commandLine(line, nodes string) func(context.Context, target.Target) error {
	shown := regexp.MustCompile(nodes)
	return func(ctx context.Context, at target.Target) error {
		var stdout, stderr bytes.Buffer
		code := appOn(&stdout, &stderr).execute(ctx, strings.Fields(fmt.Sprintf(line, at.Addr())))
		switch {
		case slices.Contains([]int{cli.ExitClean, cli.ExitFindings}, code):
			if all := stdout.String() + stderr.String(); !shown.MatchString(all) {
				return fmt.Errorf("%s names no node", all)
			}
			return nil
		case stdout.Len() > 0 || strings.Count(stderr.String(), "\n") != 1:
			return fmt.Errorf("exit code %d with %q, %q", code, stdout.String(), stderr.String())
		}
		return cli.WithCode(code, errors.New(strings.TrimSuffix(stderr.String(), "\n")))
	}
}

// checkMadeOf has everything be made of what a server says of its cluster, in time that stands still meanwhile.
func checkMadeOf(t *testing.T, answer func(command string) string, except ...string) (problems []string) {
	t.Helper()
	for name, make := range madeOfMap {
		if slices.Contains(except, name) {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			defer func() {
				if p := recover(); p != nil {
					problems = append(problems, fmt.Sprintf("%s: panic: %v\n%s", name, p, debug.Stack()))
				}
			}()
			s := wiretest.New(t, answer)
			err := make(s.Reached(context.WithoutCancel(t.Context())), s.Target())
			code := cli.ExitCode(testApp().told(nil, err))
			if err != nil && code != cli.ExitConnect && code != cli.ExitUsage {
				problems = append(problems, fmt.Sprintf("%s: exit code %d: %v", name, code, err))
			}
		})
	}
	return problems
}

// TestMadeOfAnyMap: whatever a server says of its cluster, what is made of it has a node, or it is an error that says
// that it has none.
func TestMadeOfAnyMap(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		one := rapid.Custom(func(t *rapid.T) drawnMap { return drawMap(t, nil) })
		maps := rapid.SliceOfN(one, 1, 3).Draw(rt, "maps")
		answer := nodeWith(maps, rapid.Bool().Draw(rt, "CLUSTER NODES is refused"))
		if problems := checkMadeOf(t, answer); len(problems) > 0 {
			rt.Fatal(strings.Join(problems, "\n"))
		}
	})
}

// TestMadeOfLargeMap: so does what is made of 5000 nodes, whose addresses are all those of one server. With -short
// there are 200: make hermetic has the race detector beside it, with which 5000 take half a minute.
func TestMadeOfLargeMap(t *testing.T) {
	nodes := 5000
	if testing.Short() {
		nodes = 200
	}
	answer := nodeWith([]drawnMap{mapOf(nodes)}, false)
	for _, problem := range checkMadeOf(t, answer, "topology as text", "topology simulate") {
		t.Error(problem)
	}
}

// TestVerdictOfAnyMap: a recording is judged whatever maps of the cluster are in it.
func TestVerdictOfAnyMap(t *testing.T) {
	var recordings []*recording.Recording
	for _, scenario := range []string{
		"failover-window-begun", "stale-topology-silent-master-long-since", "moved-refresh-storm",
		"topology-refresh-storm",
	} {
		recordings = append(recordings, corpus.Open(t, scenario))
	}
	rapid.Check(t, func(rt *rapid.T) {
		rec := rapid.SampledFrom(recordings).Draw(rt, "recording").Without()
		for i := range rec.Snapshots {
			if s := &rec.Snapshots[i]; s.Name == server.SnapshotClusterNodes {
				s.Body = drawMap(rt, rec.Nodes()).nodes
			}
		}
		d := verdict.Diagnose(rec, "test")
		if err := report.Text(io.Discard, d, layout.Style{}); err != nil || d.Verdict == "" {
			rt.Fatalf("%q, %v", d.Verdict, err)
		}
	})
}
