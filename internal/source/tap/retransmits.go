//go:build linux

package tap

import (
	"strings"

	"slowpath/internal/recording"
)

// retransmit records that TCP retransmitted a segment.
func (r *recorder) retransmit(e *kernelRetransEvent) {
	client, server := endsOf(&e.Addr)
	n, ok := r.nodeOf(&e.Addr, server, 0)
	if !ok || !r.records(e.Addr.Role) {
		return
	}
	s := span{r.time(firstSent(e)), r.time(e.Now)}
	d := recording.RetransmitDetail{
		Client: client.String(), From: sideOf(e.Addr.Role), State: tcpStates[e.State],
		Why: retransmitReason(e), Unacked: int64(e.Unacked), Total: int64(e.Total), Duplicates: int64(e.Dups),
	}
	if !d.Spurious() {
		list := append(r.retransmissions[client], s)
		put(r, r.retransmissions, client, list[max(0, len(list)-64):])
	}
	r.Sink.Event(recording.Event{
		TimeNs: s.from, DurationNs: s.to - s.from, Source: recording.SourceTap,
		Subject: n.Address, Kind: recording.KindRetransmit, Detail: recording.Detail(d),
	})
}

// retransmitReason is what made TCP retransmit. Before a handshake is complete only the timer does.
func retransmitReason(e *kernelRetransEvent) string {
	switch {
	case e.CaState == kernelTcpCaStateTCP_CA_Loss || strings.Contains(tcpStates[e.State], "syn"):
		return recording.RetransmitTimeout
	case e.CaState == kernelTcpCaStateTCP_CA_Recovery:
		return recording.RetransmitFast
	}
	return recording.RetransmitTailProbe
}

// firstSent is when the retransmitted segment was sent before, in the kernel's time. Where an end's sends are not
// followed, it is as long ago as its timer has waited, which doubles each time that it runs out
// (tcp_retransmit_timer). Other reasons than the timer come sooner, and count as no time.
func firstSent(e *kernelRetransEvent) uint64 {
	switch {
	case e.LastOut > 0:
		return min(e.LastOut, e.Now)
	case retransmitReason(e) == recording.RetransmitTimeout:
		waited := uint64(e.RtoUs) * 1000 * (1<<(min(e.Backoff, 15)+1) - 1)
		return e.Now - min(e.Now, waited)
	}
	return e.Now
}

// tcpStates are the names of states in a recording.
var tcpStates = map[kernelTcpState]string{
	kernelTcpStateTCP_ESTABLISHED:  "established",
	kernelTcpStateTCP_SYN_SENT:     "syn-sent",
	kernelTcpStateTCP_SYN_RECV:     "syn-recv",
	kernelTcpStateTCP_FIN_WAIT1:    "fin-wait-1",
	kernelTcpStateTCP_FIN_WAIT2:    "fin-wait-2",
	kernelTcpStateTCP_TIME_WAIT:    "time-wait",
	kernelTcpStateTCP_CLOSE:        "close",
	kernelTcpStateTCP_CLOSE_WAIT:   "close-wait",
	kernelTcpStateTCP_LAST_ACK:     "last-ack",
	kernelTcpStateTCP_LISTEN:       "listen",
	kernelTcpStateTCP_CLOSING:      "closing",
	kernelTcpStateTCP_NEW_SYN_RECV: "new-syn-recv",
}
