package python

import (
	"encoding/binary"
	"math"
	"strings"

	"slowpath/internal/source/profile/interpreter"
)

const maxLines = 64 << 10 // bytes of a table of lines

// Key is a code object, its file, name, table of lines and first line.
func (p *process) Key(at uint64) (key interpreter.Key, err error) {
	l := &p.layout
	b, err := p.Part(at, max(l.filename, l.qualname, l.lines, l.firstLine)+8)
	if err != nil {
		return key, err
	}
	if interpreter.Pointer(b, objectType) != p.types.code {
		return key, interpreter.ErrTorn
	}
	return interpreter.Key{
		at, interpreter.Pointer(b, l.filename), interpreter.Pointer(b, l.qualname), interpreter.Pointer(b, l.lines),
		uint64(binary.LittleEndian.Uint32(b[l.firstLine:])),
	}, nil
}

// Code reads what a code object names.
func (p *process) Code(key interpreter.Key) (c *interpreter.Code, err error) {
	first, begin := int(int32(key[4])), key[0]+p.layout.code
	c = &interpreter.Code{End: math.MaxUint64} // the instruction of a call that begins is one before the first
	if c.Name, err = p.text(key[2]); err != nil {
		return nil, err
	}
	if c.File, err = p.text(key[1]); err != nil {
		return nil, err
	}
	lines, err := p.table(key[3])
	if err != nil {
		return nil, err
	}
	c.Line = func(instruction uint64) (int, bool) { return lineOf(lines, first, instruction-begin) }
	c.Bytes = len(c.Name) + len(c.File) + len(lines)
	c.Passing = strings.HasPrefix(c.File, "<")
	return c, nil
}

// text reads a string (PyUnicodeObject), at most the first interpreter.MaxText characters.
func (p *process) text(at uint64) (string, error) {
	b, err := p.Part(at, stringState+8)
	if err != nil {
		return "", err
	}
	state := b[stringState] // interned: 2 bits, kind: 3, compact: 1, ascii: 1
	width, data := uint64(state>>2&7), p.layout.compact
	if state&(1<<6) != 0 {
		data = p.layout.ascii
	}
	length := min(interpreter.Pointer(b, objectLength), interpreter.MaxText)
	is := interpreter.Pointer(b, objectType)
	if is != p.types.text || width != 1 && width != 2 && width != 4 || state&(1<<5) == 0 {
		return "", interpreter.ErrTorn
	}
	var all [4 * interpreter.MaxText]byte
	raw := all[:length*width]
	if err := p.Read(at+data, raw); err != nil {
		return "", err
	}
	var s strings.Builder
	for i := uint64(0); i < uint64(len(raw)); i += width {
		var wide [4]byte
		copy(wide[:], raw[i:i+width])
		interpreter.Printed(&s, rune(binary.LittleEndian.Uint32(wide[:])))
	}
	return s.String(), nil
}

// table reads a table of lines (PyBytesObject).
func (p *process) table(at uint64) ([]byte, error) {
	b, err := p.Part(at, objectLength+8)
	if err != nil {
		return nil, err
	}
	length := interpreter.Pointer(b, objectLength)
	switch {
	case interpreter.Pointer(b, objectType) != p.types.bytes:
		return nil, interpreter.ErrTorn
	case length == 0 || length > maxLines:
		return nil, nil
	}
	table := make([]byte, length)
	return table, p.Read(at+bytesData, table)
}

// Kinds of entries of co_linetable (Objects/locations.md).
const (
	shortForms = 10 // up to here: columns alone, the line is that of the entry before
	noColumns  = 13
	longForm   = 14
	noLocation = 15
)

// lineOf finds the line of an instruction by its offset in bytes, in a table that begins at the function's first line.
// Where there is none it is the first line, and not known.
func lineOf(table []byte, first int, offset uint64) (line int, known bool) {
	line = first
	end := uint64(0)
	for len(table) > 0 {
		head := table[0]
		table = table[1:]
		kind := int(head >> 3 & 15)
		switch {
		case kind >= longForm-1 && kind != noLocation:
			var delta int
			delta, table = signed(table)
			line += delta
		case kind >= shortForms && kind < noColumns:
			line += kind - shortForms
		}
		end += 2 * (uint64(head&7) + 1) // in code units of two bytes
		if offset < end {
			if kind == noLocation {
				break
			}
			return line, true
		}
		for len(table) > 0 && table[0] < 1<<7 { // the first byte of an entry alone has the highest bit
			table = table[1:]
		}
	}
	return first, false
}

// signed reads a number of groups of six bits, the lowest first, of which the last bit is the sign.
func signed(table []byte) (n int, rest []byte) {
	u := uint(0)
	for shift := 0; len(table) > 0 && shift < 30; shift += 6 {
		b := table[0]
		table = table[1:]
		u |= uint(b&63) << shift
		if b&64 == 0 {
			break
		}
	}
	if u&1 != 0 {
		return -int(u >> 1), table
	}
	return int(u >> 1), table
}
