//go:build !linux

package probe

import "time"

func nanosleep(d time.Duration) { time.Sleep(d) }
