//go:build linux

package main

import (
	"testing"

	"slowpath/internal/house/needs"
)

// TestLongScripts runs testdata/long/*.txtar, as TestScripts does the others.
func TestLongScripts(t *testing.T) {
	needs.Long(t)
	runScripts(t, "testdata/long")
}
