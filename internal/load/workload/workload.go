// Package workload makes the requests of a load: commands with their keys and values, drawn from distributions and
// encoded. It also writes keys before the load (Prefill), checks replies (Check) and removes keys after the load
// (Cleanup...). It opens no connection and reads no clock. A Replay has the requests of a log instead.
package workload

// Op is one kind of call of a workload: a command template, or a MULTI block of several.
type Op struct {
	Name     string  // "GET"; of a template its command, upper case, with its subcommand; "MULTI" for a block
	Ratio    float64 // share of the requests, as given
	Reads    bool    // an empty reply is a miss
	ReadOnly bool    // it writes no key: a replica can answer it
	Checked  bool    // Stream.Check can check its replies (Options.Verify)
	Blocks   bool    // the reply may come only when there is data (BLPOP)
}

// Request describes a request that a Stream appended.
type Request struct {
	Op      uint16 // index into Workload.Ops
	Replies uint16 // 1, or more for a MULTI block, whose last reply ends the call
	Slot    int16  // cluster slot of its first key, -1 without a key
	Key     int64  // number of its first key, -1 without
}

// Workload is a compiled mix. It is not changed after Compile, so that many streams can draw from it.
type Workload struct {
	Ops      []Op
	Channels []string // patterns for PSUBSCRIBE that match what PUBLISH of the workload publishes to

	templates  []template
	thresholds []uint64 // cumulated ratios in parts of 2^64, without the last
	requests   []request
	options    Options
	style      style
	keys       drawer
	values     values
	setup      [][]string
	checks     []checkKind // by op, where Options.Verify asks for it
	scripts    bool
}

// RunsScripts: a template that is not one of Named runs a script.
func (w *Workload) RunsScripts() bool { return w.scripts }

// Setup are commands to send to each node before the load: SCRIPT LOAD of the scripts of EVALSHA. A server that lost
// them answers NOSCRIPT.
func (w *Workload) Setup() [][]string { return w.setup }

// Writes: the load may leave keys.
func (w *Workload) Writes() bool {
	for _, op := range w.Ops {
		if !op.ReadOnly && len(w.Patterns()) > 0 {
			return true
		}
	}
	return false
}

// RequestBytes is the mean size in bytes of the longest request, with values of the mean size.
func (w *Workload) RequestBytes() (longest int64) {
	value := w.values.mean()
	for _, r := range w.requests {
		bytes := 0.0
		for _, c := range r.commands {
			for _, a := range c {
				bytes += a.bytes(value)
			}
		}
		longest = max(longest, int64(bytes))
	}
	return longest
}

// Stream draws the requests of one worker. It is not safe for concurrent use.
type Stream struct {
	Due int64 // when the next call is due, ns since the epoch, for {due}

	w         *Workload
	rng       rng
	step      uint64   // the number of streams
	next      []uint64 // positions of sequential keys, by op
	unique    uint64
	keyed     bool // the current template has a key
	slotless  bool
	drawn     [maxParts]uint64
	valueKeys [maxParts]uint64
}

// Stream gives the stream with an index (from 0) of count. The same seed, index and count give the same requests; each
// stream has every count-th of sequential keys.
func (w *Workload) Stream(seed uint64, index, count int) *Stream {
	mix := newRNG(seed + uint64(index)*0x9e3779b97f4a7c15)
	s := &Stream{w: w, rng: newRNG(mix.next()), step: uint64(max(count, 1)), unique: uint64(index)}
	s.next = make([]uint64, len(w.templates))
	for op := range s.next {
		s.next[op] = uint64(index) % w.keys.n
	}
	return s
}

// OmitSlots makes Request.Slot -1 for all requests of the stream, which saves its computation without routing.
func (s *Stream) OmitSlots() { s.slotless = true }

// Next appends the next request to dst. It allocates only to make dst longer.
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
