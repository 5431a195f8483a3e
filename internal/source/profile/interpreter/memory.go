package interpreter

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"strings"
	"unicode"
)

// MaxPart is how many bytes Part reads at most: no struct of an interpreter is larger, as far as it is read.
const MaxPart = 1<<10 + 8

// MaxText is how many characters of a name are kept.
const MaxText = 512

// ErrTorn is of memory that is not what it should be: the process runs on while it is read.
var ErrTorn = errors.New("it changed while it was read")

// Memory is that of a process.
type Memory struct {
	From  io.ReaderAt
	small [MaxPart]byte
}

// Read fills b from an address.
func (m *Memory) Read(at uint64, b []byte) error {
	if at == 0 || at > math.MaxInt64 {
		return ErrTorn
	}
	n, err := m.From.ReadAt(b, int64(at))
	if n == len(b) {
		return nil
	}
	if err == nil || n > 0 {
		return ErrTorn
	}
	return err
}

// Part reads n bytes, at most MaxPart, which the next call overwrites.
func (m *Memory) Part(at, n uint64) ([]byte, error) {
	b := m.small[:n]
	return b, m.Read(at, b)
}

// Word reads a number or a pointer.
func (m *Memory) Word(at uint64) (uint64, error) {
	b, err := m.Part(at, 8)
	return binary.LittleEndian.Uint64(b), err
}

// Pointer is a field of what Part has read.
func Pointer(b []byte, at uint64) uint64 { return binary.LittleEndian.Uint64(b[at:]) }

// Printed adds a character of a name, or what stands for one that does not print.
func Printed(s *strings.Builder, r rune) {
	if !unicode.IsPrint(r) {
		r = '?'
	}
	s.WriteRune(r)
}
