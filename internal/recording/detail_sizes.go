package recording

// SegmentSizesDetail is the Detail of segment-sizes: the segments that one end sends to the other, of all connections
// between a client's host and a server.
type SegmentSizesDetail struct {
	Client string `json:"client"` // address of the host
	From   string `json:"from"`   // which end sends: server, client
	// Passed is how many were acknowledged that had been sent once, PassedBytes the payload of the largest, as far as
	// that is known.
	Passed      int64 `json:"passed"`
	PassedBytes int64 `json:"passed_bytes"`
	// Lost is how many times a segment that had been sent again had to be sent once more, LostBytes the payload of the
	// smallest of these; 0: an earlier event has it.
	Lost      int64 `json:"lost"`
	LostBytes int64 `json:"lost_bytes"`
	// Runs is how many of Lost came after others had passed since the one before; BetweenRuns is how many had.
	Runs        int64 `json:"runs"`
	BetweenRuns int64 `json:"between_runs"`
	// BetweenBytes is the payload of BetweenRuns together, where only that is known: PassedBytes is then no more than
	// that of the largest. 0: it is that.
	BetweenBytes int64 `json:"between_bytes,omitempty"`
	// WaitedNs is for how long these segments were sent again and again.
	WaitedNs int64 `json:"waited_ns"`
}

// Add adds what was seen later.
func (d *SegmentSizesDetail) Add(later SegmentSizesDetail) {
	if later.LostBytes > 0 && (d.LostBytes == 0 || later.LostBytes < d.LostBytes) {
		d.LostBytes = later.LostBytes
	}
	d.Client, d.From = later.Client, later.From
	d.Passed, d.PassedBytes = d.Passed+later.Passed, max(d.PassedBytes, later.PassedBytes)
	d.Lost, d.WaitedNs = d.Lost+later.Lost, d.WaitedNs+later.WaitedNs
	d.Runs, d.BetweenRuns = d.Runs+later.Runs, d.BetweenRuns+later.BetweenRuns
	d.BetweenBytes += later.BetweenBytes
}

// SegmentSizes counts them, in the order of time. A nil one does nothing.
type SegmentSizes struct {
	SegmentSizesDetail
	lostOnce      bool
	passed, bytes int64 // since the last loss
}

// Pass counts segments that were acknowledged and sent once, with the payload of the largest of them. bytes is that of
// all of them, where the sizes of single ones are not known, or else 0.
func (s *SegmentSizes) Pass(segments, largest, bytes int64) {
	if s == nil {
		return
	}
	s.Passed, s.PassedBytes = s.Passed+segments, max(s.PassedBytes, largest)
	if s.lostOnce {
		s.passed, s.bytes = s.passed+segments, s.bytes+bytes
	}
}

// Lose counts how many times a segment with so many bytes was sent again in vain, and then waited.
func (s *SegmentSizes) Lose(times, bytes, waitedNs int64) {
	if s == nil {
		return
	}
	if s.LostBytes == 0 || bytes < s.LostBytes {
		s.LostBytes = bytes
	}
	if !s.lostOnce || s.passed > 0 {
		s.Runs, s.BetweenRuns, s.BetweenBytes = s.Runs+1, s.BetweenRuns+s.passed, s.BetweenBytes+s.bytes
	}
	s.Lost, s.WaitedNs, s.lostOnce = s.Lost+times, s.WaitedNs+waitedNs, true
	s.passed, s.bytes = 0, 0
}

// Take gives what was added up since it was called last.
func (s *SegmentSizes) Take() SegmentSizesDetail {
	d := s.SegmentSizesDetail
	s.SegmentSizesDetail = SegmentSizesDetail{Client: d.Client, From: d.From}
	return d
}
