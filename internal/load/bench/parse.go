package bench

import (
	"encoding/json"
	"errors"
	"fmt"
)

// ErrNotResult: what was read is no document slowpath.bench/v1.
var ErrNotResult = errors.New("no result of a load: give what slowpath bench --json wrote")

// Parse reads a document slowpath.bench/v1. Its numbers are not checked; histograms are decoded by
// Latency.Histogram.
func Parse(body []byte) (*Result, error) {
	var r Result
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("%w (%w)", ErrNotResult, err)
	}
	if r.Schema != Schema {
		return nil, fmt.Errorf("%w; its schema is %.40q", ErrNotResult, r.Schema)
	}
	return &r, nil
}
