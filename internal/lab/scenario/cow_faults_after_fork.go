package scenario

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

const (
	bitmaps     = 24
	bitmapBytes = 32 << 20 // 8192 pages; 768 MB together, and at most twice that while a snapshot is saved
	bitsPerCall = 2000
	saveTakes   = 4 * time.Second // by then most pages have been written to
)

// cowFaultsAfterFork sets bits all over 768 MB while a snapshot is saved: after the fork the first write to a page
// faults, and the kernel copies it. Setting 2 000 bits takes 2 ms otherwise and three times as long now; other callers
// wait for it. The child that saves sleeps most of the time (rdb-key-save-delay, from Redis 6.0), so that it uses
// neither the CPUs nor the disk.
var cowFaultsAfterFork = Scenario{
	ID:    "cow-faults-after-fork",
	Cause: "cow-faults-after-fork",
	Title: "BITFIELD writes all over 768 MB of bitmaps while a snapshot is saved",
	Fixes: []string{"snapshot-on-replica"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		delay := fmt.Sprintf("rdb-key-save-delay %d", (saveTakes / bitmaps).Microseconds())
		spec := fleet.Spec{Config: append(l.since(6, 0, delay), "stop-writes-on-bgsave-error no")}
		s, saves, err := l.startForSnapshots(ctx, spec)
		if err != nil {
			return Scene{}, err
		}
		if err := fillBitmaps(ctx, s); err != nil {
			return Scene{}, err
		}
		writes, others := l.timings("BITFIELDs of 2 000 bits"), l.timings("other callers")
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 4, Rate: 40, Took: writes.add, Command: scatter})
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Rate: 100, Took: others.add, Command: traffic.Mixed(10_000)})
		l.Every(ctx, saveTakes/4, func(ctx context.Context) error {
			_, _ = saves.Do(ctx, "BGSAVE") // refused while the last one runs
			return nil
		})
		return Scene{Target: s.Addr}, nil
	},
}

// fillBitmaps sets the last bit of each, so that the server clears all of it.
func fillBitmaps(ctx context.Context, s *fleet.Instance) error {
	for i := range bitmaps {
		if _, err := s.Do(ctx, "SETBIT", "bitmap:"+itoa(i), itoa(8*bitmapBytes-1), "1"); err != nil {
			return fmt.Errorf("filling: %w", err)
		}
	}
	return nil
}

// scatter sets single bits all over a bitmap.
func scatter(r *rand.Rand, _ int) []string {
	args := []string{"BITFIELD", "bitmap:" + itoa(r.IntN(bitmaps))}
	for range bitsPerCall {
		args = append(args, "SET", "u1", itoa(r.IntN(8*bitmapBytes)), "1")
	}
	return args
}
