//go:build !linux

package agent

import "time"

func releaseProgram() {}

func slackenTimers(time.Duration) {}
