// Package workload is what a load sends: commands with their keys and values, drawn from distributions and encoded. It opens no
// connection and reads no clock.
package workload

// Op is one kind of call of a workload: a command template, or a MULTI block of several.
type Op struct {
	Name  string // "GET"; of a template its command, upper case, with its subcommand; "MULTI" for a block
	Ratio float64
	Reads bool // a null reply is a miss
}

// Request is what a Stream says of the request it appended.
type Request struct {
	Op      uint16 // index into Workload.Ops
	Replies uint16 // that it will have: 1, but more for a MULTI block, whose last reply ends the call
	Slot    int16  // cluster slot of its first key, -1 without a key
	Key     int64  // number of its first key, -1 without
}

// Workload is a compiled mix. It is not changed after Compile, so that many streams can draw from it.
type Workload struct {
	Ops []Op

	templates []template
	ratios    []float64 // cumulative, the last is 1
}

// Stream draws the requests of one worker. It is not safe for concurrent use.
type Stream struct {
	w   *Workload
	rng rng
}

// Stream gives the stream of one worker; the same seed gives the same requests.
func (w *Workload) Stream(seed uint64) *Stream { return &Stream{w: w, rng: newRNG(seed)} }

// Next appends the next request to dst. It does not allocate but to make dst longer.
func (s *Stream) Next(dst []byte) ([]byte, Request) {
	op := 0
	if len(s.w.ratios) > 1 {
		x := s.rng.float()
		for s.w.ratios[op] < x {
			op++
		}
	}
	return s.w.templates[op].append(dst, s, uint16(op))
}
