// Package ring is the agent's memory: the last minutes of a watch in full detail, on disk, within a bound. Any window
// of them can be saved as one ordinary recording.
package ring

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"slowpath/internal/agent/folder"
	"slowpath/internal/clock"
	"slowpath/internal/recording"
)

// Options of a ring.
type Options struct {
	Folder   *folder.Folder // a directory of its own, which Close closes
	Keep     time.Duration  // how much watched time is kept; 0: DefaultKeep
	Each     time.Duration  // how much of it one file has; 0: DefaultEach
	MaxBytes int64          // of all files; 0: DefaultMaxBytes
	Clock    clock.Clock    // that of the watch; nil: clock.New()
	// Log, if set, is told in one sentence each what went wrong, and when it is over. It must not block.
	Log func(string)
}

// Defaults and bounds.
const (
	DefaultKeep     = 15 * time.Minute
	DefaultEach     = 30 * time.Second
	DefaultMaxBytes = 512 << 20
	minMaxBytes     = 8 << 20

	writeEvery  = 500 * time.Millisecond // a kill loses at most this much
	retryEvery  = 5 * time.Second        // while the files cannot be written
	blockBytes  = 256 << 10
	maxPending  = 16 << 20 // bytes of blocks that are not on disk yet; then the oldest are lost
	filesOfRing = 16       // a file has at most this part of MaxBytes
)

// ErrNothing says that the ring has no rows of a window.
var ErrNothing = errors.New("the ring has nothing of this time")

// Ring takes the rows of a watch, which a watch may end and begin again. It is a recording.ProfileSink: rows are packed
// in memory, and written twice a second.
type Ring struct {
	o Options

	mu           sync.Mutex
	block        *encoder // that is filled
	state        *state
	pending      []*block // not on disk yet
	pendingBytes int
	fileNs       int64 // when the newest file began
	due          bool  // a new file is to begin
	ended        bool  // the watch has: what comes next is of another one
	closed       bool
	taken, lost  int64 // rows
	unsaid       int64 // of lost, those that no block says yet
	trouble      string
	files        []*file // the oldest first; the last one is written

	out     *writing // of the goroutine that writes
	flush   chan chan error
	kick    chan struct{}
	stop    chan struct{}
	stopped chan struct{}
	once    sync.Once
}

// Status is what a ring holds now.
type Status struct {
	From, To time.Time `json:"-"`     // the time that it has rows of; zero: none
	Files    int       `json:"files"` // in the ring
	Bytes    int64     `json:"bytes"` // of these
	Rows     int64     `json:"rows"`  // taken since Open
	Lost     int64     `json:"lost"`  // of these, rows that never came to disk and are not in memory any more
	// Trouble is why nothing is written at the moment, in a sentence; empty: all is well.
	Trouble string `json:"trouble,omitempty"`
}

func (o Options) withDefaults() (Options, error) {
	for _, d := range []struct {
		v   *time.Duration
		def time.Duration
	}{{&o.Keep, DefaultKeep}, {&o.Each, DefaultEach}} {
		if *d.v <= 0 {
			*d.v = d.def
		}
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.MaxBytes < minMaxBytes {
		return o, fmt.Errorf("ring %s: a limit of %d bytes is too small; give at least %d", o.Folder.Path(),
			o.MaxBytes,
			minMaxBytes)
	}
	if o.Clock == nil {
		o.Clock = clock.New()
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	return o, nil
}

// Open opens the ring in a directory, with what an earlier agent left there. That its files cannot be written is no
// error: it is said, and tried again.
func Open(o Options) (*Ring, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	out, err := newWriting(o)
	if err != nil {
		return nil, fmt.Errorf("ring %s: %w", o.Folder.Path(), err)
	}
	r := &Ring{
		o: o, state: newState(), out: out, flush: make(chan chan error), kick: make(chan struct{}, 1),
		stop: make(chan struct{}), stopped: make(chan struct{}), files: out.found,
	}
	r.block = newEncoder(o.Clock.Now())
	r.due, r.ended = true, true
	r.mu.Lock()
	r.seal()
	r.mu.Unlock()
	go r.run()
	return r, nil
}

// Begin says that another watch begins: what the last one knew (latest values, blind spots, which sources took part) is
// not carried over. A row after recording.MetaEnd begins one by itself.
func (r *Ring) Begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
}

// Status says what the ring holds.
func (r *Ring) Status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := Status{Files: len(r.files), Rows: r.taken, Lost: r.lost, Trouble: r.trouble}
	for i, f := range r.files {
		s.Bytes += f.bytes
		if i == 0 {
			s.From = time.Unix(0, f.fromNs).UTC()
		}
		s.To = time.Unix(0, f.toNs).UTC()
	}
	return s
}

// Flush writes what was taken so far, and returns why that failed.
func (r *Ring) Flush() error {
	reply := make(chan error, 1)
	select {
	case r.flush <- reply:
		return <-reply
	case <-r.stopped:
		return nil
	}
}

// Close writes the rest. Later rows are dropped. Its error is that of the last write.
func (r *Ring) Close() error {
	var err error
	r.once.Do(func() {
		r.mu.Lock()
		r.closed = true
		r.mu.Unlock()
		err = r.Flush()
		close(r.stop)
		<-r.stopped
		err = errors.Join(err, r.o.Folder.Close())
	})
	return err
}

// open prepares for a row. False: the ring is closed.
func (r *Ring) open() bool {
	if r.closed {
		return false
	}
	if r.ended {
		r.ended = false
		r.seal() // its first block begins when it does
		r.state.reset()
		r.block.watch()
	}
	return true
}

// took counts a row.
func (r *Ring) took() {
	r.taken++
	if len(r.block.buf) < blockBytes {
		return
	}
	r.seal()
	select {
	case r.kick <- struct{}{}:
	default:
	}
}

// seal ends the block that is filled. Where a file is due, the next one begins with what holds now.
func (r *Ring) seal() {
	now := r.o.Clock.Now()
	if r.block.rows > 0 {
		r.push(blockOf(r.block, now))
	} else if !r.due {
		r.block.fromNs = now
		return
	}
	if r.due && r.trouble == "" {
		r.state.shrink()
		e := newEncoder(now)
		r.state.write(e)
		b := blockOf(e, now)
		b.carried, b.opens = true, true
		r.push(b)
		r.due, r.fileNs = false, now
	}
	r.block = newEncoder(now)
	if r.unsaid > 0 && r.trouble == "" {
		r.block.lost(r.unsaid)
		r.unsaid = 0
	}
}

func blockOf(e *encoder, now int64) *block {
	return &block{raw: e.buf, rows: e.rows, fromNs: e.fromNs, toNs: max(now, e.fromNs)}
}

// push adds a block to those that wait to be written. The oldest are lost where they have no room: the disk is full, or
// does not answer.
func (r *Ring) push(b *block) {
	r.pending = append(r.pending, b)
	r.pendingBytes += len(b.raw)
	for r.pendingBytes > maxPending && len(r.pending) > 1 {
		old := r.pending[0]
		r.pending = r.pending[1:]
		r.pendingBytes -= len(old.raw)
		if old.carried {
			r.due = true
			continue
		}
		r.lost += int64(old.rows)
		r.unsaid += int64(old.rows)
		r.due = true // what is carried over must not rest on what was lost
	}
}

// Call implements recording.Sink.
func (r *Ring) Call(c recording.Call, segs ...recording.Segment) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open() {
		r.block.call(c, segs)
		r.took()
	}
}

// Histogram implements recording.Sink.
func (r *Ring) Histogram(h recording.Histogram) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open() {
		r.block.histogram(h)
		r.took()
	}
}

// Sample implements recording.Sink.
func (r *Ring) Sample(s recording.Sample) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open() {
		r.block.sample(s)
		r.state.sample(s)
		r.took()
	}
}

// ConnUse implements recording.Sink.
func (r *Ring) ConnUse(client string, u recording.ConnUse) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open() {
		r.block.connUse(client, u)
		r.state.connUse(client, u)
		r.took()
	}
}

// Event implements recording.Sink.
func (r *Ring) Event(e recording.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open() {
		r.block.event(e)
		r.state.event(e)
		r.took()
	}
}

// Snapshot implements recording.Sink.
func (r *Ring) Snapshot(s recording.Snapshot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open() {
		r.block.snapshot(s)
		r.state.snapshot(s)
		r.took()
	}
}

// SetMeta implements recording.Sink.
func (r *Ring) SetMeta(key, value string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open() {
		r.block.meta(key, value)
		r.state.meta(key, value)
		r.took()
		r.ended = key == recording.MetaEnd
	}
}

// Profile implements recording.ProfileSink.
func (r *Ring) Profile(p recording.Profile) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open() {
		r.block.profile(p)
		r.took()
	}
}

var _ recording.ProfileSink = (*Ring)(nil)
