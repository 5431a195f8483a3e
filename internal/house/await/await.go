// Package await waits in tests for what other processes, goroutines and the kernel do, with a deadline.
//
// It is the only place where a test may sleep, so that internal/house can forbid it elsewhere. A test of code that is
// handed its time uses testing/synctest or a clock of its own instead.
package await

import (
	"testing"
	"time"
)

// deadline is so long that only what never happens misses it, also on a machine that does much else.
const deadline = 2 * time.Minute

// Until waits until a state holds, and fails the test after two minutes. `what` is the state, as in "the server
// listens".
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	UntilOr(t, holds, func() string { return what })
}

// UntilOr is Until for a state whose description is known only when it was waited for in vain: a log, for example.
func UntilOr(t testing.TB, holds func() bool, what func() string) {
	t.Helper()
	for end := time.Now().Add(deadline); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", deadline, what())
		}
	}
}

// Pass lets real time pass where its passing is the very thing that a test is about (a caller that pauses, a peer that
// answers late), and between two looks of a loop with a deadline of its own. What follows must hold however much longer
// it takes.
func Pass(d time.Duration) { time.Sleep(d) }
