//go:build linux

package tap

import (
	"testing"

	"slowpath/internal/recording"
)

// TestRetransmits: what made TCP send again, how long ago it was sent before, and whether a call waited for it.
func TestRetransmits(t *testing.T) {
	const established, synSent = 1, 2
	for name, tt := range map[string]struct {
		e       kernelRetransEvent
		why     string
		afterMs uint64
		inVain  bool
	}{
		"timer": {kernelRetransEvent{
			State: established, CaState: kernelTcpCaStateTCP_CA_Loss, Total: 1,
			LastOut: 790e6, RtoUs: 204e3,
		}, recording.RetransmitTimeout, 210, false},
		"SYN": {
			kernelRetransEvent{State: synSent, Total: 1, RtoUs: 1e6},
			recording.RetransmitTimeout, 1000, false,
		},
		"later segments were acknowledged": {kernelRetransEvent{
			State: established, CaState: kernelTcpCaStateTCP_CA_Recovery, Total: 1,
			LastOut: 995e6,
		}, recording.RetransmitFast, 5, false},
		"probe": {
			kernelRetransEvent{State: established, Total: 1, LastOut: 995e6},
			recording.RetransmitTailProbe, 5, false,
		},
		"probe, where all before had lost": {
			kernelRetransEvent{State: established, Total: 9, LastOut: 995e6},
			recording.RetransmitTailProbe, 5, false,
		},
		"probe, where none before had lost": {kernelRetransEvent{
			State: established, Total: 9, Dups: 8,
			LastOut: 995e6,
		}, recording.RetransmitTailProbe, 5, true},
		"timer, where none before had lost": {kernelRetransEvent{
			State: established, CaState: kernelTcpCaStateTCP_CA_Loss, Total: 9, Dups: 8,
			LastOut: 700e6,
		}, recording.RetransmitTimeout, 300, false},
		"timer of an end that is not seen": {kernelRetransEvent{
			State: established, CaState: kernelTcpCaStateTCP_CA_Loss, Total: 1,
			RtoUs: 200e3,
		}, recording.RetransmitTimeout, 200, false},
		"its second time": {kernelRetransEvent{
			State: established, CaState: kernelTcpCaStateTCP_CA_Loss, Total: 2,
			RtoUs: 200e3, Backoff: 1,
		}, recording.RetransmitTimeout, 600, false},
		"and so long that the clock is less": {kernelRetransEvent{
			State: established, CaState: kernelTcpCaStateTCP_CA_Loss, Total: 9,
			RtoUs: 200e3, Backoff: 9,
		}, recording.RetransmitTimeout, 1000, false},
		"probe of an end that is not seen": {
			kernelRetransEvent{State: established, Total: 5, Dups: 4, RtoUs: 200e3},
			recording.RetransmitTailProbe, 0, true,
		},
	} {
		tt.e.Now = 1000e6
		d := recording.RetransmitDetail{
			Why: retransmitReason(&tt.e), Total: int64(tt.e.Total),
			Duplicates: int64(tt.e.Dups),
		}
		if after := tt.e.Now - firstSent(&tt.e); d.Why != tt.why || after != tt.afterMs*1e6 ||
			d.Spurious() != tt.inVain {
			t.Errorf("%s: %s after %d ms, in vain %v; want %s, %d, %v", name, d.Why, after/1e6, d.Spurious(), tt.why,
				tt.afterMs, tt.inVain)
		}
	}
}
