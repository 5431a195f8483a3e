package fault

import (
	"context"
	"testing"

	"slowpath/internal/lab/fleet"
)

// testLab runs what faults defer when the test ends. Its registry may be nil, for faults that register nothing.
type testLab struct {
	t        *testing.T
	registry *fleet.Registry
}

func (l testLab) Register(e fleet.Entry) error {
	added, err := l.registry.Add(e)
	if err == nil {
		l.Defer(func(ctx context.Context) error { return l.registry.Release(ctx, added) })
	}
	return err
}

func (l testLab) Logf(format string, args ...any) { l.t.Logf(format, args...) }

func (l testLab) Defer(undo func(context.Context) error) {
	l.t.Cleanup(func() {
		if err := undo(context.Background()); err != nil {
			l.t.Error(err)
		}
	})
}
