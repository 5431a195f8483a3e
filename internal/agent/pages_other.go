//go:build !linux

package agent

import "time"

// ReleaseProgram does nothing here.
func ReleaseProgram() {}

func slackenTimers(time.Duration) {}
