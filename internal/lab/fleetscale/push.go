package main

import (
	"compress/gzip"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
)

// push is a request of an agent.
type push struct {
	At     int64  // when it came, Unix nanoseconds
	Signal string // traces, metrics or logs; incident: no request, but the begin of the incident
	Wire   int    // bytes, as they were on the wire
	Body   []byte // the protobuf message
}

// Signals of pushes.
const (
	traces   = "traces"
	metrics  = "metrics"
	logs     = "logs"
	incident = "incident"
)

// Bounds of a recording.
const (
	maxPushes = 100_000
	maxBytes  = 256 << 20
)

// pushWriter writes a recording.
type pushWriter struct {
	file   *os.File
	zip    *gzip.Writer
	gob    *gob.Encoder
	pushes int
	bytes  int
}

func createPushes(path string) (*pushWriter, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	z := gzip.NewWriter(f)
	return &pushWriter{file: f, zip: z, gob: gob.NewEncoder(z)}, nil
}

func (w *pushWriter) add(p push) error {
	w.pushes++
	w.bytes += len(p.Body)
	if w.pushes > maxPushes || w.bytes > maxBytes {
		return fmt.Errorf("more than %d pushes or %d bytes: record fewer agents, or a shorter time", maxPushes,
			maxBytes)
	}
	return w.gob.Encode(p)
}

func (w *pushWriter) close() error { return errors.Join(w.zip.Close(), w.file.Close()) }

// readPushes reads a recording.
func readPushes(path string) (out []push, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for all := gob.NewDecoder(io.LimitReader(z, 2*maxBytes)); ; {
		var p push
		err := all.Decode(&p)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		out = append(out, p)
	}
}
