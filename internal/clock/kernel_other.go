//go:build !linux

package clock

import "errors"

// Monotonic is the time of the kernel's events, which only Linux has.
func Monotonic() (int64, error) {
	return 0, errors.New("the kernel's monotonic clock is read on Linux only")
}
