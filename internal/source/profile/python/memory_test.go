package python

import (
	"testing"

	"slowpath/internal/source/profile/interpreter/memorytest"
)

var checked = memorytest.Checked{Language: &Language, Program: "threads.py", Stacks: map[string][]string{
	"spin":      {"spin_within # spins", "spin.<locals>.nested # calls spin_within", "spin # calls nested"},
	"wait":      {"Shop.wait # sleeps"},
	"loop":      {"parse # blocks the loop", "handler # awaits parse"},
	"generator": {"Shop.wait # sleeps", "générer.<locals>.<genexpr> # in a generator", "générer # in a generator"},
	"main":      {"main # reads"},
}}

// TestRecorded: memory of testdata/threads.py in each version, which was written by
// go test -run TestStacks ./internal/source/profile/python -python PROGRAM -record cpython.
func TestRecorded(t *testing.T) {
	checked.Recorded(t, 5, 9) // a frame of C is read by itself
}

// FuzzMemory: no memory makes Stacks panic, go on without end, or give more than it may.
func FuzzMemory(f *testing.F) { checked.Fuzz(f) }
