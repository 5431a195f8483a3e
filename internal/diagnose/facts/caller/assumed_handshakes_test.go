package caller

import (
	"testing"

	"slowpath/internal/recording"
)

// TestHandshakesThatWereNotSeen: where more connections are opened than their handshakes are recorded, the others made
// no more calls for that. Of a connection that was open before it is not known when it was greeted.
func TestHandshakesThatWereNotSeen(t *testing.T) {
	seen := &recording.HandshakeDetail{Ops: []string{"HELLO", "CLIENT SETINFO"}}
	odd := &recording.HandshakeDetail{Ops: []string{"HELLO"}}
	c := &Caller{Conns: []*Conn{
		{OpenNs: 1, Calls: 5, Handshake: seen},
		{OpenNs: 2, Calls: 5, Handshake: seen},
		{OpenNs: 3, Calls: 4, Handshake: odd},
		{OpenNs: 4, Calls: 5},
		{OpenNs: 5, Calls: 1},
		{Calls: 5},
	}}
	c.assumeHandshakes()
	for i, want := range []int64{3, 3, 3, 3, 0, 5} {
		if got := c.Conns[i].AppCalls(); got != want {
			t.Errorf("connection %d made %d calls of the application, want %d", i, got, want)
		}
	}
}
