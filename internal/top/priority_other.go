//go:build !linux

package top

import "time"

// lowPriority only measures here: the time that passes, which is no less than the CPU time.
func lowPriority() func() time.Duration {
	begin := time.Now()
	return func() time.Duration { return time.Since(begin) }
}
