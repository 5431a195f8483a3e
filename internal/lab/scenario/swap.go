package scenario

import (
	"context"
	"math/rand/v2"

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
		if err := fillValues(ctx, s, swapKeys, swapValue); err != nil {
			return Scene{}, err
		}
		single, multi := l.timings("GETs of random keys"), l.timings("MGETs of 50 random keys")
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Rate: 200, Took: single.add, Command: randomKeys("GET", 1)})
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Rate: 50, Took: multi.add, Command: randomKeys("MGET", 50)})
		return Scene{Target: s.Addr}, nil
	},
}

// randomKeys reads n keys of the server.
func randomKeys(command string, n int) func(*rand.Rand, int) []string {
	return func(r *rand.Rand, _ int) []string {
		args := []string{command}
		for range n {
			args = append(args, "fill:"+itoa(r.IntN(swapKeys)))
		}
		return args
	}
}

// fillValues makes n keys fill:0 … with values of a size in bytes.
func fillValues(ctx context.Context, s *fleet.Instance, n, bytes int) error {
	const script = "local v=string.rep('0123456789abcdef',ARGV[3]/16) for i=ARGV[1],ARGV[2] do " +
		"redis.call('SET','fill:'..i,v) end"
	return evalSteps(ctx, s, script, n, itoa(bytes))
}
