package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Sweep removes the leftovers of labs that are dead, but not what `lab up` made. It returns what it removed; an entry
// that could not be removed stays and is reported in the error.
func (r *Registry) Sweep(ctx context.Context) ([]Entry, error) {
	return r.removeIf(ctx, func(e Entry) bool { return !e.Persistent && r.orphaned(e) })
}

// Down removes what `lab up` of this user made under the given names.
func (r *Registry) Down(ctx context.Context, names ...string) ([]Entry, error) {
	return r.removeIf(ctx, func(e Entry) bool {
		return e.Persistent && e.own() && slices.Contains(names, e.fleet())
	})
}

// Release removes the things of the entries, in the right order, and then the entries. A thing that does not exist is
// no error.
func (r *Registry) Release(ctx context.Context, entries ...Entry) error {
	_, err := r.remove(ctx, entries)
	return err
}

func (r *Registry) removeIf(ctx context.Context, want func(Entry) bool) ([]Entry, error) {
	entries, readErr := r.Entries()
	entries = slices.DeleteFunc(entries, func(e Entry) bool { return !want(e) })
	removed, err := r.remove(ctx, entries)
	return removed, errors.Join(readErr, err)
}

func (r *Registry) remove(ctx context.Context, entries []Entry) ([]Entry, error) {
	var removed []Entry
	var errs []error
	for _, e := range entries { // a frozen, throttled or stalled process cannot die
		if e.Kind == KindCgroup && r.current(e) {
			r.host.unlimit(e.Paths)
		}
	}
	for _, e := range inRemovalOrder(entries) {
		err := r.clean(ctx, e)
		if err == nil {
			err = r.Forget(e.ID)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("removing %s %s: %w", e.Kind, e.ID, err))
			continue
		}
		removed = append(removed, e)
	}
	return removed, errors.Join(errs...)
}

func sortByTime(entries []Entry) {
	slices.SortStableFunc(entries, func(a, b Entry) int { return a.Created.Compare(b.Created) })
}
