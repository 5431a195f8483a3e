package connection

import (
	"testing"

	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/recording"
)

// TestRetryWaits: the wait between the end of a connection that the other end had closed, and the dial after it.
func TestRetryWaits(t *testing.T) {
	const ms = int64(1e6)
	conn := func(openMs, closeMs, serverClosedMs int64) *caller.Conn {
		k := &caller.Conn{
			OpenNs: openMs * ms, CloseNs: closeMs * ms, ServerClosedNs: serverClosedMs * ms, Side: recording.Client,
		}
		if serverClosedMs > 0 {
			k.CloseReason = recording.CloseReset
		}
		return k
	}
	first, again := conn(10, 2000, 1500), conn(2020, 4000, 3500)
	third := conn(4030, 5000, 0) // the client closes it
	late, apart := conn(8000, 0, 0), conn(9000, 0, 0)
	checked := conn(30, 7990, 7000) // the client saw the end before it sent a call
	checked.CloseReason = ""
	c := &caller.Caller{Conns: []*caller.Conn{first, again, third, late, apart, checked, conn(20, 8500, 8600)}}
	waits := RetryWaits(c)
	if len(waits) != 2 || waits[again] != 20*ms || waits[third] != 30*ms {
		t.Errorf("%v", waits)
	}
}
