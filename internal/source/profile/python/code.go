package python

import (
	"encoding/binary"
	"strings"
	"unicode"
)

// What is kept of code objects at most.
const (
	maxCodes     = 4096
	checkEvery   = 16
	maxCodeBytes = 16 << 20
	maxLines     = 64 << 10 // bytes of a table of lines
	maxText      = 512      // characters of a name
)

// codeKey tells code objects apart. Where one was freed, another may be at its address.
type codeKey struct {
	at, file, name, lines uint64
	first                 uint32
}

// code is what is known of a code object.
type code struct {
	name, file string
	first      int
	begin      uint64 // its first instruction
	lines      []byte // co_linetable; nil where it is too long
	// the last answer: a thread that waits is at the same place each time
	at   uint64
	last Frame
}

// check is when a code object was read last.
type check struct {
	*code
	call int
}

// codeOf is the code of a frame. It is read at most once in checkEvery calls while the frame stays where it is. Code
// that a program makes ("<string>") comes and goes, and is read each time.
func (p *Process) codeOf(f frame) (*code, error) {
	if c, known := p.checked[f]; known && p.calls-c.call < checkEvery && !strings.HasPrefix(c.file, "<") {
		return c.code, nil
	}
	c, err := p.readCode(f.code)
	if err != nil {
		return nil, err
	}
	if len(p.checked) == maxCodes {
		clear(p.checked)
	}
	p.checked[f] = check{c, p.calls}
	return c, nil
}

// readCode reads a code object; its texts once.
func (p *Process) readCode(at uint64) (*code, error) {
	l := &p.layout
	b, err := p.part(at, max(l.filename, l.qualname, l.lines, l.firstLine)+8)
	if err != nil {
		return nil, err
	}
	if pointer(b, objectType) != p.types.code {
		return nil, errTorn
	}
	key := codeKey{
		at, pointer(b, l.filename), pointer(b, l.qualname), pointer(b, l.lines),
		binary.LittleEndian.Uint32(b[l.firstLine:]),
	}
	if c, known := p.codes[key]; known {
		return c, nil
	}
	c := &code{first: int(int32(key.first)), begin: at + l.code}
	if c.name, err = p.text(key.name); err != nil {
		return nil, err
	}
	if c.file, err = p.text(key.file); err != nil {
		return nil, err
	}
	if c.lines, err = p.table(key.lines); err != nil {
		return nil, err
	}
	if len(p.codes) == maxCodes || p.codeBytes > maxCodeBytes {
		clear(p.codes)
		clear(p.checked)
		p.codeBytes = 0
	}
	p.codes[key] = c
	p.codeBytes += len(c.name) + len(c.file) + len(c.lines)
	return c, nil
}

// text reads a string (PyUnicodeObject), at most the first maxText characters.
func (p *Process) text(at uint64) (string, error) {
	b, err := p.part(at, stringState+8)
	if err != nil {
		return "", err
	}
	state := b[stringState] // interned: 2 bits, kind: 3, compact: 1, ascii: 1
	width, data := uint64(state>>2&7), p.layout.compact
	if state&(1<<6) != 0 {
		data = p.layout.ascii
	}
	length := min(pointer(b, objectLength), maxText)
	if pointer(b, objectType) != p.types.text || width != 1 && width != 2 && width != 4 || state&(1<<5) == 0 {
		return "", errTorn
	}
	var all [4 * maxText]byte
	raw := all[:length*width]
	if err := p.read(at+data, raw); err != nil {
		return "", err
	}
	var s strings.Builder
	for i := uint64(0); i < uint64(len(raw)); i += width {
		var wide [4]byte
		copy(wide[:], raw[i:i+width])
		r := rune(binary.LittleEndian.Uint32(wide[:]))
		if !unicode.IsPrint(r) {
			r = '?'
		}
		s.WriteRune(r)
	}
	return s.String(), nil
}

// table reads a table of lines (PyBytesObject).
func (p *Process) table(at uint64) ([]byte, error) {
	b, err := p.part(at, objectLength+8)
	if err != nil {
		return nil, err
	}
	length := pointer(b, objectLength)
	switch {
	case pointer(b, objectType) != p.types.bytes:
		return nil, errTorn
	case length == 0 || length > maxLines:
		return nil, nil
	}
	table := make([]byte, length)
	return table, p.read(at+bytesData, table)
}

// frame is a call of the function, at an instruction.
func (c *code) frame(instruction uint64) Frame {
	if c.at != instruction || c.last.Function == "" {
		c.at, c.last = instruction, Frame{Function: c.name, File: c.file}
		line, known := lineOf(c.lines, c.first, instruction-c.begin)
		c.last.Line, c.last.Begin = line, !known
	}
	return c.last
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
