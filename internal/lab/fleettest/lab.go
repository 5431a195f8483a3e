package fleettest

import (
	"context"
	"testing"

	"slowpath/internal/lab/fleet"
)

// Lab is what a fault needs of the lab that it is made in.
type Lab struct {
	testing.TB
	registry *fleet.Registry
}

// NewLab is a lab that ends with the test. It fails the test if anything is left in its registry then.
func NewLab(t testing.TB) Lab {
	t.Helper()
	registry, err := fleet.OpenRegistry(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if left, err := registry.Entries(); err != nil || len(left) > 0 {
			t.Errorf("left in the registry: %v, %v", left, err)
		}
	})
	return Lab{t, registry}
}

// Register has an entry released at the end.
func (l Lab) Register(e fleet.Entry) error {
	added, err := l.registry.Add(e)
	if err == nil {
		l.Defer(func(ctx context.Context) error { return l.registry.Release(ctx, added) })
	}
	return err
}

// Defer runs what a fault undoes when the test ends.
func (l Lab) Defer(undo func(context.Context) error) {
	l.Cleanup(func() {
		if err := undo(context.Background()); err != nil {
			l.Error(err)
		}
	})
}
