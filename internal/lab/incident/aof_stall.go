package incident

import (
	"context"

	"slowpath/internal/lab/traffic"
)

// aofFsyncAlways writes with appendfsync always to a disk of 1 MB/s.
var aofFsyncAlways = Incident{
	ID:    "aof-fsync-always",
	Cause: "aof-fsync-always",
	Title: "appendfsync always on a disk that writes 1 MB/s",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		d, err := l.SlowDisk(ctx, 1_000_000)
		if err != nil {
			return Scene{}, err
		}
		s, err := l.StartOn(ctx, d, "appendfsync always")
		if err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 4, Rate: 1000, Command: traffic.Set(1000, 500)})
		return Scene{Target: s.Addr}, nil
	},
}

// aofEverysecStall writes 2.4 MB/s, twice with its journal, to an append-only file on a disk of 4 MB/s.
var aofEverysecStall = Incident{
	ID:    "aof-everysec-stall",
	Cause: "aof-everysec-stall",
	Title: "appendfsync everysec with 2.4 MB/s of writes, through a journal, on a disk that writes 4 MB/s",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		d, err := l.SlowDisk(ctx, 4_000_000)
		if err != nil {
			return Scene{}, err
		}
		s, err := l.StartOn(ctx, d, "appendfsync everysec")
		if err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Rate: 600, Command: traffic.Set(1000, 4000)})
		return Scene{Target: s.Addr}, nil
	},
}
