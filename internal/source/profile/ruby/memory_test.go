package ruby

import (
	"testing"

	"slowpath/internal/source/profile/interpreter/memorytest"
)

var checked = memorytest.Checked{Language: &Language, Program: "threads.rb", Stacks: map[string][]string{
	"spin":  {"spin_within # spins", "block in spin # calls spin_within", "spin # calls nested"},
	"wait":  {"wait # sleeps"},
	"block": {"wait # sleeps", "block in größe # in a block"},
	"long":  {"wait # sleeps", "long # after many lines"},
	"fiber": {"parse # blocks the fiber", "block in fiber # in a fiber"},
	"main":  {"main # reads", "<main> # runs main"},
}}

// TestRecorded: memory of testdata/threads.rb in each version, which was written by
// go test -run TestStacks ./internal/source/profile/ruby -ruby PROGRAM -record cruby.
func TestRecorded(t *testing.T) { checked.Recorded(t, len(layouts), 16) }

// FuzzMemory: no memory makes Stacks panic, go on without end, or give more than it may.
func FuzzMemory(f *testing.F) { checked.Fuzz(f) }
