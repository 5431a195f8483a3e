package fleet

import (
	"testing"

	"slowpath/internal/lab/servers"
)

func TestMapRefuses(t *testing.T) {
	f := newFleet(t)
	for _, m := range []MapSpec{
		{},
		{Masters: 1, MigratingSlots: 1},
		{Masters: 10_000},
		{Masters: 2, Replicas: -1},
		{Masters: 2, UncoveredSlots: Slots},
	} {
		if _, err := f.StartMap(t.Context(), servers.Binary{}, m, Spec{}); err == nil {
			t.Errorf("%+v: no error", m)
		}
	}
}
