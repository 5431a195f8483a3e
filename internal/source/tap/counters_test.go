//go:build linux

package tap

import (
	"slices"
	"testing"
)

// TestCounterNames: each counter of the programs has a name of its own, as recordings know it (docs/recording.md).
func TestCounterNames(t *testing.T) {
	spec, err := loadKernel()
	if err != nil {
		t.Fatal(err)
	}
	names := namesOfCounters(t)
	if n := int(spec.Maps[kernelMapCounters].MaxEntries); len(names) != n {
		t.Errorf("%d names for %d counters", len(names), n)
	}
	for number, want := range map[kernelCounter]string{
		kernelCounterC_CALLS_SERVER: "calls.server",
		kernelCounterC_NO_MEMORY:    "no_memory",
		kernelCounterC_LATE_ACKS:    "late_acks",
	} {
		if names[number] != want {
			t.Errorf("counter %d is %q, want %q", number, names[number], want)
		}
	}
	slices.Sort(names)
	if names[0] == "" || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("a name is missing, or not unique: %q", names)
	}
}

// TestServerFunctionsFit: the programs have room for the times of all hooked functions of a server.
func TestServerFunctionsFit(t *testing.T) {
	if len(serverFunctions) > int(kernelLimitFUNCTIONS) {
		t.Errorf("%d functions, room for %d", len(serverFunctions), kernelLimitFUNCTIONS)
	}
}
