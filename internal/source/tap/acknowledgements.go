//go:build linux

package tap

import "slowpath/internal/recording"

// acknowledged records when a reply arrived in the kernel of a client on another host.
func (r *recorder) acknowledged(e *kernelAckedEvent) {
	client, server := endsOf(&e.Addr)
	n, ok := r.nodeOf(&e.Addr, server, e.Tgid)
	if !ok || e.Addr.Observer != notObserver || r.sample.wasLeftOut(client) {
		return
	}
	r.Sink.Event(recording.Event{
		TimeNs: r.time(e.From), DurationNs: int64(e.To - e.From), Source: recording.SourceTap,
		Subject: n.Address, Kind: recording.KindAcknowledged,
		Detail: recording.Detail(recording.AckDetail{
			Client: client.String(), Unacked: int64(e.Unacked),
			MinWaitNs: int64(e.Sure), Retransmitted: int64(e.Retransmitted), WindowClosed: e.ZeroWindow != 0,
			RTTMinNs: int64(e.RttMinUs) * 1000,
		}),
	})
}
