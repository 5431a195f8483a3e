// Package workload is what a load sends: commands with their keys and values, drawn from distributions and encoded;
// what is to be there before the load (Prefill), how a reply is told from a wrong one (Check), and what is to be
// removed after it (Cleanup). It opens no connection and reads no clock. A Replay sends what a log of commands has
// instead.
package workload

// Op is one kind of call of a workload: a command template, or a MULTI block of several.
type Op struct {
	Name     string  // "GET"; of a template its command, upper case, with its subcommand; "MULTI" for a block
	Ratio    float64 // share of the requests, as given
	Reads    bool    // a reply in which there is nothing is a miss
	ReadOnly bool    // it writes no key: a replica can answer it
	Checked  bool    // Stream.Check can tell a wrong reply: asked for by Options.Verify
	Blocks   bool    // the reply may come only when there is data (BLPOP)
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
	Ops      []Op
	Channels []string // patterns for PSUBSCRIBE that match what PUBLISH of the workload publishes to

	templates  []template
	thresholds []uint64 // cumulated ratios in parts of 2^64, the last is implied
	requests   []request
	options    Options
	style      style
	keys       drawer
	values     values
	setup      [][]string
	checks     []checkKind // by op, where Options.Verify asks for it
}

// Setup are commands to be sent to each node before the load: SCRIPT LOAD of the scripts whose digests are sent. A
// server that lost them answers NOSCRIPT.
func (w *Workload) Setup() [][]string { return w.setup }

// Writes tells whether the load may leave keys.
func (w *Workload) Writes() bool {
	for _, op := range w.Ops {
		if !op.ReadOnly && len(w.Patterns()) > 0 {
			return true
		}
	}
	return false
}

// Stream draws the requests of one worker. It is not safe for concurrent use.
type Stream struct {
	Due int64 // when the next call is due, ns since the epoch, for {due}

	w         *Workload
	rng       rng
	step      uint64   // how many streams there are
	next      []uint64 // where sequential keys stand, by op
	unique    uint64
	keyed     bool // the template at hand has a key
	slotless  bool
	drawn     [maxParts]uint64
	valueKeys [maxParts]uint64
}

// Stream gives stream number index (from 0) of count. The same seed, index and count give the same requests; of
// sequential keys each of the streams has every count-th.
func (w *Workload) Stream(seed uint64, index, count int) *Stream {
	mix := newRNG(seed + uint64(index)*0x9e3779b97f4a7c15)
	s := &Stream{w: w, rng: newRNG(mix.next()), step: uint64(max(count, 1)), unique: uint64(index)}
	s.next = make([]uint64, len(w.templates))
	for op := range s.next {
		s.next[op] = uint64(index) % w.keys.n
	}
	return s
}

// LeaveSlots has the stream's requests without their slots: Request.Slot is -1. Whom nobody routes is spared the
// look-up.
func (s *Stream) LeaveSlots() { s.slotless = true }

// Next appends the next request to dst. It does not allocate but to make dst longer.
func (s *Stream) Next(dst []byte) ([]byte, Request) {
	op := 0
	if len(s.w.thresholds) > 0 {
		for x := s.rng.next(); op < len(s.w.thresholds) && s.w.thresholds[op] <= x; op++ {
		}
	}
	t := &s.w.templates[op]
	key := uint64(0)
	if k := &s.w.keys; t.hasKey && k.keys.Dist == Uniform { // as draw, without a call
		key = k.keys.Low + s.rng.below(k.n)
	} else if t.hasKey {
		key = k.draw(&s.rng, &s.next[op], s.step)
	}
	if t.plain >= 0 {
		return t.appendPlain(dst, s, uint16(op), key)
	}
	s.keyed = t.hasKey
	return t.append(dst, s, uint16(op), key)
}

// neighbour is the key after one in its group.
func (w *Workload) neighbour(key uint64) uint64 { return w.style.neighbour(w.keys.keys, key) }
