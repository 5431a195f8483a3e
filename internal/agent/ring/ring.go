// Package ring is the agent's memory: the last minutes of a watch in full detail, on disk, within a bound. Any window of
// them can be saved as one ordinary recording.
package ring

import (
	"context"
	"errors"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
)

// Options of a ring.
type Options struct {
	Dir      string        // a directory of its own; made if it is not there
	Keep     time.Duration // how much watched time is kept; 0: DefaultKeep
	Each     time.Duration // how much of it one file has; 0: DefaultEach
	MaxBytes int64         // of all files; 0: DefaultMaxBytes
	Clock    clock.Clock   // that of the watch; nil: clock.New()
	// Log, if set, is told in one sentence each what went wrong, and when it is over. It must not block.
	Log func(string)
}

// Defaults.
const (
	DefaultKeep     = 15 * time.Minute
	DefaultEach     = 30 * time.Second
	DefaultMaxBytes = 512 << 20
)

// ErrNothing says that the ring has no rows of a window.
var ErrNothing = errors.New("the ring has nothing of this time")

// Ring takes the rows of a watch, which a watch may end and begin again. It is a recording.ProfileSink.
type Ring struct{}

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

// Open opens the ring in a directory, with what an earlier agent left there.
func Open(Options) (*Ring, error) { return nil, errors.ErrUnsupported }

// Begin says that another watch begins: what the last one knew (latest values, blind spots, which sources took part) is
// not carried over. A row after recording.MetaEnd begins one by itself.
func (r *Ring) Begin() {}

// Save writes what was seen in [from, to) to a new recording at path, which must not exist. What sources wrote earlier
// and still held at from is in it, so that it is judged as a watch of that time. It includes what came in up to now.
// ErrNothing: there is nothing of this time.
func (r *Ring) Save(ctx context.Context, from, to time.Time, path string) error {
	return errors.ErrUnsupported
}

// Status says what the ring holds.
func (r *Ring) Status() Status { return Status{} }

// Flush writes what was taken so far, and returns why that failed.
func (r *Ring) Flush() error { return errors.ErrUnsupported }

// Close writes the rest.
func (r *Ring) Close() error { return errors.ErrUnsupported }

// Call implements recording.Sink.
func (r *Ring) Call(recording.Call, ...recording.Segment) {}

// Histogram implements recording.Sink.
func (r *Ring) Histogram(recording.Histogram) {}

// Sample implements recording.Sink.
func (r *Ring) Sample(recording.Sample) {}

// ConnUse implements recording.Sink.
func (r *Ring) ConnUse(string, recording.ConnUse) {}

// Event implements recording.Sink.
func (r *Ring) Event(recording.Event) {}

// Snapshot implements recording.Sink.
func (r *Ring) Snapshot(recording.Snapshot) {}

// SetMeta implements recording.Sink.
func (r *Ring) SetMeta(key, value string) {}

// Profile implements recording.ProfileSink.
func (r *Ring) Profile(recording.Profile) {}

var _ recording.ProfileSink = (*Ring)(nil)
