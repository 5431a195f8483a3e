package incident

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// pinThread lets the calling goroutine run on one CPU only, on a thread of its own that ends with it: no other
// goroutine is to inherit the pin.
func pinThread(cpu int) error {
	runtime.LockOSThread()
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("pinning a thread of the lab to CPU %d: %w", cpu, err)
	}
	return nil
}
