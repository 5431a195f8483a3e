package scenario

import (
	"context"
	"math/rand/v2"
	"time"
)

// rareEvery bounds the time from one rare stall to the next: a watch has two or three of them.
const (
	rareEveryLeast = 2500 * time.Millisecond
	rareEveryMost  = 3600 * time.Millisecond
)

// rarely is a fault that comes every every_ms, so seldom that a watch has a few of them. Its trials are so long that
// each has one.
func rarely(f Fault) Fault {
	draw, on := f.Draw, f.On
	f.Name, f.Trial, f.Lasts = "rare-"+f.Name, rareEveryMost, 300*time.Millisecond
	f.Draw = func(r *rand.Rand) Strength {
		s := draw(r)
		s["every_ms"] = between(r, float64(rareEveryLeast.Milliseconds()), float64(rareEveryMost.Milliseconds()))
		return s
	}
	f.On = func(ctx context.Context, l *Lab, st *Stage, s Strength) error {
		part := l.Part()
		l.onceAfter(ctx, s.millis("every_ms")/3, func(ctx context.Context) error { return on(ctx, part, st, s) })
		return nil
	}
	return f
}
