//go:build linux

package tap

import (
	"net/netip"

	"slowpath/internal/recording"
)

// served books the server's view of a slow call of slowpath itself. It is no call of the server's users; the account
// takes from it what the server did while the probe waited for it.
func (b *book) served(n Node, e *kernelCallEvent, client netip.AddrPort) {
	if e.Role != roleServer || e.Flags&(flagFresh|flagMerged|flagSampled) != 0 {
		return
	}
	this := [3]uint64{e.Conn, e.At[0], e.At[3]}
	if this == b.lastOwn {
		return // asked and answered together with the one before
	}
	b.lastOwn = this
	start, end := b.time(e.At[0]), b.time(e.At[3])
	d := recording.ServedDetail{Op: b.opOf(e.Op).name, Client: client.String()}
	for _, s := range b.serverSegments(e) {
		d.Parts = append(d.Parts, recording.ServedPart{
			Actor: s.Actor, State: s.State, FromNs: s.FromNs - start,
			ToNs: s.ToNs - start, Culprit: s.Culprit,
		})
	}
	b.Sink.Event(recording.Event{
		TimeNs: start, DurationNs: end - start, Source: recording.SourceTap,
		Subject: n.Address, Kind: recording.KindServed, Detail: recording.Detail(d),
	})
}
