package incident

import (
	"context"

	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/traffic"
)

// aofFsyncAlways writes with appendfsync always to a disk of 1 MB/s.
var aofFsyncAlways = Incident{
	ID:    "aof-fsync-always",
	Cause: "aof-fsync-always",
	Title: "appendfsync always on a disk that writes 1 MB/s",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		d, err := fault.NewSlowDisk(ctx, l, 1_000_000)
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
