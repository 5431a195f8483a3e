//go:build linux

package main

import (
	"testing"

	"slowpath/internal/house/needs"
)

// TestCulprits: a finding names the process that has to change, of several of one interpreter. Without a quiet CPU the
// finding may be another one.
func TestCulprits(t *testing.T) {
	needs.Long(t, needs.Root, needs.BPF, needs.RedisServer, needs.Python, needs.QuietCPU)
	runScripts(t, "testdata/alone")
}
