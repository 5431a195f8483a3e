package incident

import (
	"context"

	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/traffic"
)

// aofEverysecStall writes 2.4 MB/s, twice with its journal, to an append-only file on a disk of 4 MB/s.
var aofEverysecStall = Incident{
	ID:    "aof-everysec-stall",
	Cause: "aof-everysec-stall",
	Title: "appendfsync everysec with 2.4 MB/s of writes, through a journal, on a disk that writes 4 MB/s",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		d, err := fault.NewSlowDisk(ctx, l, 4_000_000)
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
