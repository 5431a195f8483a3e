package scenario

import (
	"context"
	"math/rand/v2"

	"slowpath/internal/lab/traffic"
)

// aofFsyncAlways writes with appendfsync always to a disk of 3 MB/s, which is enough for one fsync per second.
var aofFsyncAlways = Scenario{
	ID:    "aof-fsync-always",
	Cause: "aof-fsync-always",
	Title: "appendfsync always on a disk that writes 3 MB/s",
	Fixes: []string{"fsync-each-second"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.startWithAOF(ctx, 3_000_000, "appendfsync always")
		if err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 4, Rate: 1000, Command: traffic.Set(1000, 500)})
		return Scene{Target: s.Addr}, nil
	},
}

// syncAlways waits for the disk before each reply to a write.
var syncAlways = Fault{
	Name:  "aof-fsync-always",
	Cause: "aof-fsync-always",
	Needs: Needs{Topologies: []Topology{SlowDisk}, Alone: []Alone{disk}},
	Draw:  func(r *rand.Rand) Strength { return Strength{"disk_kb_per_second": between(r, 400, 50_000)} },
	On: func(ctx context.Context, l *Lab, st *Stage, s Strength) error {
		l.Defer(func(ctx context.Context) error {
			if err := st.Disk.Unlimit(); err != nil {
				return err
			}
			_, err := st.Server.Do(ctx, "CONFIG", "SET", "appendfsync", "everysec")
			return err
		})
		if err := st.Disk.Limit(s.int("disk_kb_per_second") * 1000); err != nil {
			return err
		}
		_, err := st.Server.Do(ctx, "CONFIG", "SET", "appendfsync", "always")
		return err
	},
}
