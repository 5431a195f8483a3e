package matrix

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/servers"
)

// Plan is what a matrix is to hold.
type Plan struct{ Clients, Servers, Topologies []string }

// NewPlan is a plan of names between commas. Without names it has all that are usual.
func NewPlan(programs, versions, topologies string) (p Plan, err error) {
	// they are for scenarios of an event loop, and of a framework
	usual := slices.DeleteFunc(clients.Known(), func(n clients.Name) bool {
		return n == clients.PyAsync || n == clients.SpringCache
	})
	if p.Clients, err = chosen("clients", programs, usual, clients.CheckName); err != nil {
		return p, err
	}
	p.Servers, err = chosen("servers", versions, servers.Known(), func(name servers.Name) error {
		_, err := servers.Lookup(name)
		return err
	})
	if err == nil {
		p.Topologies, err = chosen("topology", topologies, Topologies(), among("topology", Topologies()))
	}
	return p, err
}

// chosen reads names between commas. Where there are none it is all. An error begins with what is named.
func chosen[Name ~string](what, text string, all []Name, check func(Name) error) (out []string, err error) {
	names := make([]string, len(all))
	for i, name := range all {
		names[i] = string(name)
	}
	if text == "" {
		return names, nil
	}
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		if err := check(Name(name)); err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		if slices.Contains(out, name) {
			return nil, fmt.Errorf("%s: %s is named twice", what, name)
		}
		out = append(out, name)
	}
	return out, nil
}

// among refuses names that are none of those known.
func among(what string, known []string) func(string) error {
	return func(name string) error {
		if slices.Contains(known, name) {
			return nil
		}
		return fmt.Errorf("unknown %s %q; known: %s", what, name, strings.Join(known, " "))
	}
}

// Cells lists the pairs of the plan, by topology, server and client: what shares servers stands together.
func (p Plan) Cells() []Cell {
	var out []Cell
	for _, t := range p.Topologies {
		for _, s := range p.Servers {
			for _, c := range p.Clients {
				out = append(out, Cell{Client: c, Server: s, Topology: t})
			}
		}
	}
	return out
}

// How long a cell takes, beside the time of its calls.
const (
	// setUp is for starting the client twice, and for doctor to load the tap and to judge.
	setUp        = 3 * time.Second
	formsCluster = 6 * time.Second // three masters and three replicas that agree
)

// Expected is about how long cells take on a machine that has all programs in its caches.
func Expected(cells []Cell, s Settings) time.Duration {
	each := s.Warmup + s.Duration + setUp
	if s.Watch > 0 {
		each += s.Warmup + s.Watch + setUp
	}
	total := time.Duration(len(cells)) * each
	last := Cell{}
	for _, c := range cells {
		if c.Topology == Cluster && (c.Server != last.Server || c.Topology != last.Topology) {
			total += formsCluster
		}
		last = c
	}
	return total
}

// Todo lists the cells of the plan that m does not have, or has without figures for a reason that may be gone.
func (p Plan) Todo(m *Matrix) []Cell {
	var todo []Cell
	for _, c := range p.Cells() {
		if have, ok := m.Find(c); !ok || have.Again {
			todo = append(todo, c)
		}
	}
	return todo
}

// Full and Quick are the usual settings. Doctor watches for so long as the lab's scenarios need it to, and in quick
// mode for so long as gives the profile source time for a profile of the CPU. Incident 000 had three masters, three
// replicas and 100 connections.
func Full() Settings {
	return Settings{
		Workers: 100, Keys: 1000, Warmup: 2 * time.Second, Duration: 10 * time.Second,
		Watch: 8 * time.Second, WatchShare: 0.5, Masters: 3, Replicas: 1,
	}
}

// Quick is for CI.
func Quick() Settings {
	s := Full()
	s.Quick, s.Warmup, s.Duration, s.Watch = true, time.Second, 2*time.Second, 4*time.Second
	return s
}

// ErrSettings says that cells cannot be measured in this way.
var ErrSettings = errors.New("bad settings of a matrix")

// Bounds of settings: more workers than that would measure the machine's scheduler.
const mostWorkers = 10_000

// Check finds what no cell could do. Errors match ErrSettings.
func (s Settings) Check() error {
	switch {
	case s.Workers < 1 || s.Workers > mostWorkers:
		return fmt.Errorf("%w: %d workers; give 1 to %d", ErrSettings, s.Workers, mostWorkers)
	case s.Duration <= 0:
		return fmt.Errorf("%w: calls are counted for %v; give a time above 0", ErrSettings, s.Duration)
	case s.WatchShare < 0 || s.WatchShare > 1:
		return fmt.Errorf("%w: doctor watches a share of %v; give one from 0 to 1", ErrSettings, s.WatchShare)
	case s.Watch < 0 || s.Warmup < 0:
		return fmt.Errorf("%w: a time below 0", ErrSettings)
	case s.Keys < 1 || s.Masters < 3 || s.Replicas < 0: // redis-cli --cluster create refuses fewer, too
		return fmt.Errorf("%w: %d keys, %d masters with %d replicas each", ErrSettings, s.Keys, s.Masters, s.Replicas)
	}
	return nil
}
