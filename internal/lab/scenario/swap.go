package scenario

import (
	"context"
	"math"
	"math/rand/v2"
	"time"

	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

const (
	swapFile   = 1 << 30   // bytes
	swapMemory = 256 << 20 // bytes that the server may have
	swapKeys   = 160_000
	swapValue  = 4 << 10 // bytes: a page each, about 750 MB together
)

// swapScenario limits a server with 750 MB of data to 256 MB of memory; the kernel moves the rest to a swap file. Two
// of three keys that are read must be fetched from it first, in the main thread, and other pages are swapped out for
// them.
var swapScenario = Scenario{
	ID:    "swap",
	Cause: "swap",
	Title: "a server with 750 MB of data and 256 MB of memory, and a swap file",
	Fixes: []string{"raise-memory-limit"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		if err := fault.SwapFile(ctx, l, swapFile); err != nil {
			return Scene{}, err
		}
		g, err := fault.MemoryCgroup(l, swapMemory)
		if err != nil {
			return Scene{}, err
		}
		s, err := l.Start(ctx, fleet.Spec{CgroupProcs: []string{g.Procs()}})
		if err != nil {
			return Scene{}, err
		}
		if err := fillValues(ctx, s, "fill:", swapKeys, swapValue); err != nil {
			return Scene{}, err
		}
		single, multi := l.timings("GETs of random keys"), l.timings("MGETs of 50 random keys")
		one, many := randomKeys("GET", 1, "fill:", swapKeys), randomKeys("MGET", 50, "fill:", swapKeys)
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Rate: 200, Took: single.add, Command: one})
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Rate: 50, Took: multi.add, Command: many})
		return Scene{Target: s.Addr}, nil
	},
}

// randomKeys reads n keys of the server.
func randomKeys(command string, n int, prefix string, of int) func(*rand.Rand, int) []string {
	return func(r *rand.Rand, _ int) []string {
		args := []string{command}
		for range n {
			args = append(args, prefix+itoa(r.IntN(of)))
		}
		return args
	}
}

// fillValues makes n keys PREFIX0 … with values of a size in bytes.
func fillValues(ctx context.Context, s *fleet.Instance, prefix string, n, bytes int) error {
	const script = "local v=string.rep('0123456789abcdef',ARGV[3]/16) for i=ARGV[1],ARGV[2] do " +
		"redis.call('SET',ARGV[4]..i,v) end"
	return evalSteps(ctx, s, script, n, itoa(bytes), prefix)
}

// What the server of a drawn scenario has in memory, beside little else.
const drawnSwapKeys = 80_000

// changedRows reads rows and changes some. What is not changed is in swap already when it is swapped out again.
func changedRows(r *rand.Rand, _ int) []string {
	row := "row:" + itoa(r.IntN(drawnSwapKeys))
	if r.IntN(2) == 0 {
		return []string{"GET", row}
	}
	return []string{"SETRANGE", row, "0", itoa(r.IntN(10))}
}

// swappedOut limits the memory of the server, and has others use rows that were swapped out for it.
var swappedOut = Fault{
	Name:    "swap",
	Cause:   "swap",
	Needs:   Needs{Topologies: []Topology{Standalone, Proxied}, Alone: []Alone{maxMemory, heap}},
	Trial:   2 * time.Second, // callers wait where pages are written for others, and that comes in bursts
	Culprit: "search",
	Draw: func(r *rand.Rand) Strength {
		return Strength{"memory_mb": math.Round(100 + 250*r.Float64()), "rows_per_second": between(r, 200, 15_000)}
	},
	Server: func(ctx context.Context, l *Lab, st *Stage, spec *fleet.Spec) error {
		if err := fault.SwapFile(ctx, l, swapFile); err != nil {
			return err
		}
		var err error
		if st.memory, err = fault.MemoryCgroup(l, swapFile); err == nil {
			spec.CgroupProcs = append(spec.CgroupProcs, st.memory.Procs())
		}
		return err
	},
	Prepare: func(ctx context.Context, _ *Lab, st *Stage, _ Strength) error {
		return fillValues(ctx, st.Server, "row:", drawnSwapKeys, swapValue)
	},
	On: func(ctx context.Context, l *Lab, st *Stage, s Strength) error {
		l.Defer(func(context.Context) error { return st.memory.SetMemory(swapFile) })
		if err := st.memory.SetMemory(s.int("memory_mb") << 20); err != nil {
			return err
		}
		rows := st.load("search", 10, s["rows_per_second"], changedRows)
		rows.Pipeline = 50
		l.Load(ctx, rows)
		return nil
	},
}
