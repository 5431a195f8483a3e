// Package memorytest has what tests of interpreters have in common: memories of processes that were, or never were, and
// programs whose threads are known to be in certain functions.
package memorytest

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"
)

// Span is a part of a memory.
type Span struct {
	At    uint64
	Bytes []byte
}

// Memory is that of a process that was, or never was: all else is not mapped.
type Memory struct {
	Spans []Span
	Reads int
	// Before, if set, is called before each read.
	Before func(at uint64)
}

func (m *Memory) ReadAt(b []byte, off int64) (int, error) {
	m.Reads++
	if m.Before != nil {
		m.Before(uint64(off))
	}
	for _, s := range m.Spans {
		at, length := uint64(off), uint64(len(s.Bytes))
		if at >= s.At && at-s.At < length && length-(at-s.At) >= uint64(len(b)) {
			return copy(b, s.Bytes[at-s.At:]), nil
		}
	}
	return 0, errors.New("not mapped")
}

// Put writes a number or a pointer into the first span.
func (m *Memory) Put(at, value uint64) {
	binary.LittleEndian.PutUint64(m.Spans[0].Bytes[at-m.Spans[0].At:], value)
}

// PutText writes bytes into the first span.
func (m *Memory) PutText(at uint64, text string) { copy(m.Spans[0].Bytes[at-m.Spans[0].At:], text) }

// Patched is a copy. Each patch of 12 bytes puts 8 bytes at some place, or a pointer to another place, so that lists
// get loops.
func (m *Memory) Patched(patches []byte) *Memory {
	to := &Memory{}
	for _, s := range m.Spans {
		to.Spans = append(to.Spans, Span{s.At, bytes.Clone(s.Bytes)})
	}
	for ; len(patches) >= 12; patches = patches[12:] {
		s := to.Spans[int(binary.BigEndian.Uint16(patches))%len(to.Spans)]
		place := s.Bytes[int(binary.BigEndian.Uint16(patches[2:]))%len(s.Bytes):]
		value := patches[4:12]
		if other := to.Spans[int(binary.BigEndian.Uint16(value))%len(to.Spans)]; value[7]&1 == 0 {
			value = binary.LittleEndian.AppendUint64(nil, other.At+uint64(value[2])*8)
		}
		copy(place, value)
	}
	return to
}

// Recorder keeps what is read of a memory.
type Recorder struct {
	io.ReaderAt
	spans []Span
}

func (r *Recorder) ReadAt(b []byte, off int64) (int, error) {
	n, err := r.ReaderAt.ReadAt(b, off)
	if n == len(b) {
		r.spans = slices.DeleteFunc(r.spans, func(s Span) bool { return s.At == uint64(off) && len(s.Bytes) <= n })
		r.spans = append(r.spans, Span{uint64(off), bytes.Clone(b)})
	}
	return n, err
}

// Fixture is a memory that was recorded: where variables are, and the numbers of threads by name. Its file is gzipped
// text, a thread, variable or span in each line.
type Fixture struct {
	Memory
	Variables []uint64
	Threads   map[string]int
}

// Write makes a file of what was read.
func (r *Recorder) Write(file string, variables []uint64, threads map[string]int) error {
	var text bytes.Buffer
	z := gzip.NewWriter(&text)
	for _, at := range variables {
		fmt.Fprintf(z, "variable %x\n", at)
	}
	for name, tid := range threads {
		fmt.Fprintln(z, "thread", name, tid)
	}
	for _, s := range r.spans {
		fmt.Fprintf(z, "memory %x %x\n", s.At, s.Bytes)
	}
	if err := z.Close(); err != nil {
		return err
	}
	return os.WriteFile(file, text.Bytes(), 0o644)
}

// ReadFixture reads such a file.
func ReadFixture(t testing.TB, file string) *Fixture {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	fixture := &Fixture{Threads: map[string]int{}}
	for in := bufio.NewReader(z); ; {
		var kind, name string
		var tid int
		var at uint64
		var s Span
		if _, err := fmt.Fscan(in, &kind); errors.Is(err, io.EOF) {
			return fixture
		}
		switch kind {
		case "variable":
			_, err = fmt.Fscanf(in, "%x\n", &at)
			fixture.Variables = append(fixture.Variables, at)
		case "thread":
			_, err = fmt.Fscan(in, &name, &tid)
			fixture.Threads[name] = tid
		default:
			_, err = fmt.Fscanf(in, "%x %x\n", &s.At, &s.Bytes)
			fixture.Spans = append(fixture.Spans, s)
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
}
