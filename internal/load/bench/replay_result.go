package bench

// ReplayOf is settings.arrivals of calls that are due at their times in a log.
const ReplayOf = "log"

// Replay is what a load sent that replayed a log.
type Replay struct {
	Requests int64 `json:"requests"`  // of the log, that can be sent
	Sent     int64 `json:"sent"`      // of them, in this load
	Clients  int   `json:"clients"`   // of the log
	LengthNs int64 `json:"length_ns"` // from the first request to the last, at the speed of the log
	// Speed is how much faster than in the log the requests are due; 0: as fast as connections and pipeline allow.
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
