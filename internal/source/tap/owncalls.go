//go:build linux

package tap

import (
	"slowpath/internal/recording"
)

// ownCall records the server's view of a slow call of slowpath itself. It is no call of the server's users; the account
// takes from it what the server did while the probe waited for it.
func (r *recorder) ownCall(n Node, e *kernelCallEvent, client clientEnd) {
	if e.Addr.Observer != ownObserver || e.Role != roleServer || e.Flags&(flagFresh|flagMerged|flagSampled) != 0 {
		return
	}
	this := [3]uint64{e.Conn, e.At[0], e.At[3]}
	if this == r.lastOwnCall {
		return // sent and answered together with the one before
	}
	r.lastOwnCall = this
	start, end := r.time(e.At[0]), r.time(e.At[3])
	d := recording.ServedDetail{Op: r.opOf(e.Op).name, Client: client.String()}
	for _, s := range r.serverSegments(e) {
		d.Parts = append(d.Parts, recording.ServedPart{
			Actor: s.Actor, State: s.State, FromNs: s.FromNs - start,
			ToNs: s.ToNs - start, Culprit: s.Culprit,
		})
	}
	r.Sink.Event(recording.Event{
		TimeNs: start, DurationNs: end - start, Source: recording.SourceTap,
		Subject: n.Address, Kind: recording.KindServed, Detail: recording.Detail(d),
	})
}
