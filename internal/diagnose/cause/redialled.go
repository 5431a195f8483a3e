package cause

import (
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/recording"
)

// supportDialled says how many of the new connections a caller waited for, and what one costs.
func (f *Finding) supportDialled(r connection.Redial) {
	f.support(recording.SourceTap, float64(len(r.Dialled)), "connections", "%d of %d connections that it opened had "+
		"their first call right after the handshake: a caller waited for them", len(r.Dialled), len(r.Opened()))
	f.supportOpening(r)
}
