//go:build linux

package bench

import (
	"fmt"
	"time"

	"slowpath/internal/format"
	"slowpath/internal/load/engine"
)

// replay says what of the log was sent; nil without a log.
func (s *summary) replay() *Replay {
	log := s.Load.Replay
	if log == nil {
		return nil
	}
	r := &Replay{
		Requests: int64(log.Requests()), Sent: s.total.Begun, Clients: log.Clients(),
		LengthNs: int64(log.Length), Speed: s.Load.ReplaySpeed,
		Skipped: []Skip{}, Notes: append([]string{}, log.Notes...),
	}
	for _, k := range log.Skipped {
		r.Skipped = append(r.Skipped, Skip{k.Command, k.Why, k.Count})
	}
	r.Notes = append(r.Notes, orderNotes(&s.Load, len(s.total.Nodes) > 0)...)
	return r
}

// orderNotes say how far the order of the log is kept.
func orderNotes(o *engine.Options, routed bool) []string {
	among := "that between clients only by their times"
	if !o.Paced() {
		among = "that between clients is not"
	}
	out := []string{fmt.Sprintf("the order of each client's requests is kept, %s", among)}
	if routed && o.Pipeline > 1 {
		out[0] = fmt.Sprintf("the order of each client's requests is kept per node, since %d may be in flight to "+
			"several; %s", o.Pipeline, among)
	}
	if clients := o.Replay.Clients(); clients > o.Connections && o.Paced() {
		out = append(out, fmt.Sprintf("%s of the log share %s, and may wait for each other: --connections %d gives "+
			"each its own", format.Count(clients, "client"), format.Count(o.Connections, "connection"), clients))
	}
	return out
}

// askedRate is the mean rate of the schedule or log over the time that it ran.
func (s *summary) askedRate(seconds float64) float64 {
	if s.Load.Replay != nil {
		return rate(s.total.Begun+s.ran.Unsent, seconds)
	}
	return meanRate(s.Load.Schedule, time.Duration(seconds*1e9))
}
