//go:build linux

package tap

import "slowpath/internal/recording"

// acknowledged books when the client of another host had a reply in its kernel.
func (b *book) acknowledged(e *kernelAckedEvent) {
	client, server := endsOf(&e.Addr)
	n, ok := b.node(server, e.Addr.Role, e.Tgid)
	if !ok || b.ends[client].pid == b.self {
		return
	}
	b.Sink.Event(recording.Event{
		TimeNs: b.time(e.From), DurationNs: int64(e.To - e.From), Source: recording.SourceTap,
		Subject: n.Address, Kind: recording.KindAcknowledged,
		Detail: recording.Detail(recording.AckDetail{
			Client: client.String(), Unacked: int64(e.Unacked),
			SureNs: int64(e.Sure), Resent: int64(e.Resent), Shut: e.Shut != 0,
			RTTMinNs: int64(e.RttMinUs) * 1000,
		}),
	})
}
