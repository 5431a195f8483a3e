package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"slowpath/internal/recording"
)

// ErrTooLarge: no result of a load is that large.
var ErrTooLarge = errors.New("larger than a result of a load can be")

// maxResultBytes is more than a day of seconds takes.
const maxResultBytes = 64 << 20

// Read reads a document slowpath.bench/v1. What is no such document is ErrNotResult.
func Read(from io.Reader) (*Result, error) {
	b, err := io.ReadAll(io.LimitReader(from, maxResultBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading a result: %w", err)
	case len(b) > maxResultBytes:
		return nil, ErrTooLarge
	}
	return parseChecked(b)
}

// parseChecked is Parse, and refuses numbers that are out of range.
func parseChecked(b []byte) (*Result, error) {
	r, err := Parse(b)
	if err != nil {
		return nil, err
	}
	if r.Seconds < 0 || r.Seconds > 1e9 || r.Requests < 0 || r.Start.Year() < 1970 || r.Start.Year() > 2200 {
		return nil, fmt.Errorf("%w: its numbers are out of range", ErrNotResult)
	}
	for _, s := range r.Series {
		if s.Second < 0 || s.Second > 1e9 || s.Seconds < 0 || s.Seconds > 1 || s.Requests < 0 {
			return nil, fmt.Errorf("%w: its series is out of range", ErrNotResult)
		}
	}
	return r, nil
}

// Record writes the result into a recording, and its bottleneck into the recording's metadata.
func (r *Result) Record(sink recording.Sink, atNs int64) error {
	body, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encoding the result: %w", err)
	}
	sink.SetMeta(recording.MetaLimitedBy, limitedByText(r.LimitedBy, r.Bottleneck))
	sink.Snapshot(recording.Snapshot{
		TimeNs: atNs, Source: recording.SourceLoad, Subject: r.Target.Address,
		Name: recording.SnapshotResult, Body: string(body),
	})
	return nil
}

// Recorded is the result that a recording holds, the last if there are several.
func Recorded(rec *recording.Recording) (*Result, error) {
	for i := len(rec.Snapshots) - 1; i >= 0; i-- {
		if s := rec.Snapshots[i]; s.Source == recording.SourceLoad && s.Name == recording.SnapshotResult {
			return parseChecked([]byte(s.Body))
		}
	}
	return nil, ErrNotResult
}
