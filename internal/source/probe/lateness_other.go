//go:build !linux

package probe

import (
	"context"
	"errors"
	"time"

	"slowpath/internal/clock"
)

// Lateness needs Linux.
type Lateness struct{ CPU int }

// WatchLateness needs Linux, which pins threads to CPUs.
func WatchLateness(context.Context, *clock.Real, int) (*Lateness, error) {
	return nil, errors.New("only Linux pins threads to CPUs")
}

// Within is 0.
func (l *Lateness) Within(int64, int64) time.Duration { return 0 }
