//go:build linux

package host

import "testing"

// TestUnanswered: retransmissions to a peer that no longer answers are told from a lost segment, a zero window and a
// keepalive.
func TestUnanswered(t *testing.T) {
	var a socketSums
	for _, s := range []Socket{
		{Timer: 1, Retransmits: 1}, // lost once
		{Timer: 1, Retransmits: 2},
		{Timer: 1, Retransmits: 5},
		{Timer: 2, Retransmits: 4}, // keepalive
		{Timer: 4, Retransmits: 6}, // the window is closed
		{},
	} {
		a.add(&s)
	}
	if a.unanswered != 7 || a.count != 6 {
		t.Errorf("%d unanswered retransmissions, of %d sockets; want 7, 6", a.unanswered, a.count)
	}
}
