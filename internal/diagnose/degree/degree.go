// Package degree has the numbers by which the diagnosis says a part, most and nearly all, several and many, at once and
// long. All causes mean the same by them: a number of its own needs evidence of its own
// (docs/decisions/0036-words-for-degrees.md).
package degree

import "time"

const (
	// Part of a whole is what matters to it: what is less does not explain it, and is not worth to be changed.
	// Bound: guess, a tenth; the verdicts of drawn scenarios by the measured share of their faults would measure it.
	Part = 0.1
	// Most of a whole is what it is about.
	// Bound: majority, of what is named beside it.
	Most = 0.5
	// NearlyAll of a whole is all of it but what two sources, or two clocks, see differently.
	// Bound: guess, nine tenths; the same time by two sources of many recordings would measure it.
	NearlyAll = 0.9
	// Several are a pattern and no accident; several times as much is no longer about the same.
	// Bound: guess, three; the numbers of healthy recordings would measure it.
	Several = 3
	// Many are enough for a share of them.
	// Bound: statistics, the standard error of a share of 10 is up to 16 percentage points.
	Many = 10
	// AtOnce is the longest time between two events of which the second follows from the first, on a busy host.
	// Bound: guess, some turns of other threads on a CPU (3 ms each by default); run queues of many hosts would measure
	// it.
	AtOnce = 5 * time.Millisecond
	// Long is a pause that no program makes while it works.
	// Bound: guess, a second; pauses between the calls of busy connections of many recordings would measure it.
	Long = time.Second
	// Listed is how many items of one kind a text names.
	// Bound: arithmetic, what a reader takes in at a glance.
	Listed = 3
)
