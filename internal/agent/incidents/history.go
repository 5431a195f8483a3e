package incidents

import (
	"errors"
	"time"
)

// History keeps minutes of latency for days.
type History struct{}

// OpenHistory opens the history in a file, of at most maxBytes, with minutes of the last keep.
func OpenHistory(path string, keep time.Duration, maxBytes int64) (*History, error) {
	return nil, errors.ErrUnsupported
}

// Add adds a minute; of the same minute, node and Own the last one counts.
func (h *History) Add(Minute) error { return errors.ErrUnsupported }

// Minutes are those that begin in [from, to), in Unix seconds, by time and node.
func (h *History) Minutes(from, to int64) ([]Minute, error) { return nil, errors.ErrUnsupported }

// Close closes the file.
func (h *History) Close() error { return errors.ErrUnsupported }
