package scenario

import (
	"context"
	"math/rand/v2"
	"time"

	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// aofEverysecStall writes 2.4 MB/s, twice with its journal, to an append-only file on a disk of 4 MB/s.
var aofEverysecStall = Scenario{
	ID:    "aof-everysec-stall",
	Cause: "aof-everysec-stall",
	Title: "appendfsync everysec with 2.4 MB/s of writes, through a journal, on a disk that writes 4 MB/s",
	Fixes: []string{"faster-disk", "aof-on-replica"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.startWithAOF(ctx, 4_000_000, "appendfsync everysec")
		if err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Rate: 600, Command: traffic.Set(1000, 4000)})
		return Scene{Target: s.Addr}, nil
	},
}

// startWithAOF starts a server with its append-only file on a disk that writes so many bytes per second; or on that of
// the host, where a faster disk is the fix.
func (l *Lab) startWithAOF(ctx context.Context, bytesPerSecond int, fsync string) (*fleet.Instance, error) {
	if l.Fixed("faster-disk") {
		return l.Start(ctx, fleet.Spec{AOF: true, Config: []string{"auto-aof-rewrite-percentage 0", fsync}})
	}
	d, err := fault.NewSlowDisk(ctx, l, bytesPerSecond)
	if err != nil {
		return nil, err
	}
	return l.StartOn(ctx, d, fsync)
}

// everySecondOnSlowDisk writes more than a disk of 4 MB/s takes, so that write() waits for it.
var everySecondOnSlowDisk = Fault{
	Name:    "aof-everysec-stall",
	Cause:   "aof-everysec-stall",
	Needs:   Needs{Topologies: []Topology{SlowDisk}, Alone: []Alone{disk}},
	Trial:   3 * time.Second, // the journal and the page cache fill first
	Lasts:   300 * time.Millisecond,
	Culprit: "import",
	Draw:    func(r *rand.Rand) Strength { return Strength{"writes_per_second": between(r, 50, 900)} },
	On: func(ctx context.Context, l *Lab, st *Stage, s Strength) error {
		l.Defer(func(context.Context) error { return st.Disk.Unlimit() })
		if err := st.Disk.Limit(4_000_000); err != nil {
			return err
		}
		l.Load(ctx, st.load("import", 10, s["writes_per_second"], traffic.Set(1000, 4000)))
		return nil
	},
}
