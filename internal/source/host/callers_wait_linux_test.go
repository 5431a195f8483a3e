package host

import (
	"testing"
)

func TestWaitNs(t *testing.T) {
	const ms = int64(1e6)
	for name, tt := range map[string]struct {
		s    Socket
		want int64
	}{
		"waits": {Socket{
			HasInfo: true, DataSegsOut: 3, SentAgoNs: 900 * ms, ReceivedAgoNs: 5000 * ms,
			RTONs: 200 * ms,
		}, 900 * ms},
		"answered": {
			Socket{HasInfo: true, DataSegsOut: 3, SentAgoNs: 900 * ms, ReceivedAgoNs: 899 * ms},
			0,
		},
		"never used": {Socket{HasInfo: true, SentAgoNs: 900 * ms, ReceivedAgoNs: 1 << 40}, 0},
		"the first request": {Socket{
			HasInfo: true, DataSegsOut: 1, SentAgoNs: 900 * ms, ReceivedAgoNs: 900 * ms,
			AckedAgoNs: 900 * ms,
		}, 900 * ms},
		"within a tick": {Socket{
			HasInfo: true, DataSegsOut: 9, DataSegsIn: 9, SentAgoNs: 900 * ms,
			ReceivedAgoNs: 900 * ms, AckedAgoNs: 900 * ms,
		}, 0},
		"acknowledged alone": {Socket{
			HasInfo: true, DataSegsOut: 9, DataSegsIn: 8, SentAgoNs: 900 * ms,
			ReceivedAgoNs: 900 * ms, AckedAgoNs: 860 * ms,
		}, 900 * ms},
		"the reply comes twice": {Socket{
			HasInfo: true, DataSegsOut: 9, DataSegsIn: 9, SentAgoNs: 900 * ms,
			ReceivedAgoNs: 900 * ms, AckedAgoNs: 892 * ms,
		}, 0},
		"twice, from afar": {Socket{
			HasInfo: true, DataSegsOut: 9, DataSegsIn: 9, SentAgoNs: 900 * ms,
			ReceivedAgoNs: 900 * ms, AckedAgoNs: 852 * ms, RTTNs: 20 * ms,
		}, 0},
		"twice, by the timer": {Socket{
			HasInfo: true, DataSegsOut: 9, DataSegsIn: 9, SentAgoNs: 900 * ms,
			ReceivedAgoNs: 900 * ms, AckedAgoNs: 696 * ms,
		}, 0},
		"kept alive": {Socket{
			HasInfo: true, DataSegsOut: 9, DataSegsIn: 9, SentAgoNs: 90000 * ms,
			ReceivedAgoNs: 90000 * ms, AckedAgoNs: 60000 * ms,
		}, 0},
		"not acknowledged": {Socket{HasInfo: true, DataSegsOut: 9, DataSegsIn: 8, Unacked: 1, SentAgoNs: 900 *
			ms, ReceivedAgoNs: 900 * ms, AckedAgoNs: 900 * ms}, 900 * ms},
		"retransmitted three times": {Socket{
			HasInfo: true, DataSegsOut: 4, SentAgoNs: 100 * ms, ReceivedAgoNs: 9000 * ms,
			RTONs: 1600 * ms, Backoff: 3,
		}, 1500 * ms},
		"from a table without it": {Socket{}, 0},
	} {
		if got := tt.s.waitNs(); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}
