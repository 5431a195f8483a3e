//go:build linux

package bench

import (
	"fmt"
	"time"

	"slowpath/internal/load"
)

// ReplayOf a log: what settings.arrivals says of calls that are due at their times in it.
const ReplayOf = "log"

// Replay is what a load sent that replayed a log.
type Replay struct {
	Requests int64 `json:"requests"`  // of the log, that can be sent
	Sent     int64 `json:"sent"`      // of them, in this load
	Clients  int   `json:"clients"`   // of the log, whose requests these are
	LengthNs int64 `json:"length_ns"` // from the first request to the last, at the log's own pace
	// Speed is how much faster than the log the requests are due; 0: without pace, as fast as connections and pipeline allow.
	Speed   float64  `json:"speed"`
	Skipped []Skip   `json:"skipped"` // the most frequent first
	Notes   []string `json:"notes"`   // what differs from the log
}

// Skip is commands of the log that are not replayed.
type Skip struct {
	Command string `json:"command"`
	Why     string `json:"why"`
	Count   int64  `json:"count"`
}

// replayed says what of the log was sent; nil of a load that drew its requests.
func (s *summary) replayed() *Replay {
	log := s.Load.Replay
	if log == nil {
		return nil
	}
	r := &Replay{Requests: int64(log.Requests()), Sent: s.total.Begun, Clients: log.Clients(), LengthNs: int64(log.Length), Speed: s.Load.ReplaySpeed,
		Skipped: []Skip{}, Notes: append([]string{}, log.Notes...)}
	for _, k := range log.Skipped {
		r.Skipped = append(r.Skipped, Skip{k.Command, k.Why, k.Count})
	}
	r.Notes = append(r.Notes, orderOf(&s.Load, len(s.total.Nodes) > 0)...)
	return r
}

// orderOf says how far the order of the log is kept.
func orderOf(o *load.Options, routed bool) []string {
	among := "that among clients only by their times"
	if !o.Paced() {
		among = "that among clients is not"
	}
	out := []string{fmt.Sprintf("the order of each client's requests is kept, %s", among)}
	if routed && o.Pipeline > 1 {
		out[0] = fmt.Sprintf("the order of each client's requests is kept per node, since %d may be in flight to several; %s", o.Pipeline, among)
	}
	if clients := o.Replay.Clients(); clients > o.Connections && o.Paced() {
		out = append(out, fmt.Sprintf("%d clients of the log share %d connections, and may wait for each other: --connections %d gives each its own", clients, o.Connections, clients))
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
