package ruby

import (
	"encoding/binary"
	"math/bits"
	"strings"
	"unicode/utf8"

	"slowpath/internal/source/profile/interpreter"
)

// What is read of one function at most.
const (
	maxInstructions = 1 << 20 // words
	maxEntries      = 8 << 10 // of its table of lines
)

// Types of objects, in the lowest bits of their flags.
const (
	typeMask, typeString, typeArray = 0x1f, 0x05, 0x07
	// an instruction sequence is an internal object (T_IMEMO) of a kind
	iseqMask, typeISeq = 0xf01f, 0x701a
	flag1              = 1 << 13 // of a string: it is elsewhere; of an array: it is not
	lengthShift        = 14      // of the length of an embedded string, of five bits
)

// In strings and arrays.
const objectData, stringLength, stringText, stringBytes = 16, 16, 24, 32

// Key is an instruction sequence, its body, path, name, first instruction, and the sizes of it and its table of lines.
func (p *process) Key(at uint64) (key interpreter.Key, err error) {
	b, err := p.Part(at, codeBytes)
	if err != nil {
		return key, err
	}
	if at&7 != 0 || interpreter.Pointer(b, codeFlags)&iseqMask != typeISeq {
		return key, interpreter.ErrTorn
	}
	return p.keyOf(at, interpreter.Pointer(b, codeBody))
}

func (p *process) keyOf(at, body uint64) (key interpreter.Key, err error) {
	b, err := p.Part(body, p.layout.lines+linesBytes)
	if err != nil {
		return key, err
	}
	size := binary.LittleEndian.Uint32(b[bodySize:])
	entries := binary.LittleEndian.Uint32(b[p.layout.lines+linesSize:])
	if size > maxInstructions {
		return key, interpreter.ErrTorn
	}
	return interpreter.Key{
		at, body, interpreter.Pointer(b, bodyPath), interpreter.Pointer(b, bodyName), interpreter.Pointer(b, bodyBegin),
		uint64(size)<<32 | uint64(entries),
	}, nil
}

// Code reads what an instruction sequence names.
func (p *process) Code(key interpreter.Key) (c *interpreter.Code, err error) {
	size := key[5] >> 32
	c = &interpreter.Code{Begin: key[4], End: key[4] + 8*size}
	if c.Name, err = p.text(key[3]); err != nil {
		return nil, err
	}
	if c.File, err = p.path(key[2]); err != nil {
		return nil, err
	}
	l, err := p.lines(key[1], size)
	if err != nil {
		return nil, err
	}
	if again, err := p.keyOf(key[0], key[1]); err != nil || again != key {
		return nil, interpreter.ErrTorn
	}
	c.Line = func(instruction uint64) (int, bool) { return l.of((instruction - c.Begin) / 8) }
	c.Bytes = len(c.Name) + len(c.File) + 4*len(l.lines) + 8*len(l.ranks)
	c.Passing = strings.HasPrefix(c.File, "(") // "(eval at app.rb:7)"
	return c, nil
}

// path is that of a file: a string, or an array of the path and the real path.
func (p *process) path(at uint64) (string, error) {
	b, err := p.Part(at, stringBytes)
	if err != nil {
		return "", err
	}
	if flags := interpreter.Pointer(b, 0); flags&typeMask == typeArray && flags&flag1 != 0 {
		at = interpreter.Pointer(b, objectData)
	}
	return p.text(at)
}

// text reads a string, at most the first MaxText characters.
func (p *process) text(at uint64) (string, error) {
	b, err := p.Part(at, stringBytes)
	if err != nil {
		return "", err
	}
	flags, length, data := interpreter.Pointer(b, 0), interpreter.Pointer(b, stringLength), at+stringText
	switch {
	case at&7 != 0 || flags&typeMask != typeString:
		return "", interpreter.ErrTorn
	case flags&flag1 != 0:
		data = interpreter.Pointer(b, stringText)
	case p.layout.lengthInFlags:
		length, data = flags>>lengthShift&31, at+objectData
	}
	var all [4 * interpreter.MaxText]byte
	raw := all[:min(length, uint64(len(all)))]
	if err := p.Read(data, raw); err != nil {
		return "", err
	}
	var s strings.Builder
	for n := 0; len(raw) > 0 && n < interpreter.MaxText; n++ {
		r, width := utf8.DecodeRune(raw)
		raw = raw[width:]
		if r == utf8.RuneError {
			r = '?'
		}
		interpreter.Printed(&s, r)
	}
	return s.String(), nil
}

// lines is the table of lines of a function: which of them an instruction is at is its rank among those where a line
// begins.
type lines struct {
	first int
	lines []int32
	// ranks of the first instructions, nine of 7 bits in a word; and then blocks of 512: the rank of the first one in
	// the lower half of a word, those of 64 at a time within it, of 9 bits in a word, and a bit for each
	ranks []uint64
}

const (
	immediate           = 54 // instructions with a rank of their own
	immediateWords      = immediate / 9
	blockBits, perBlock = 512, 10 // words
)

// lines reads the table of a function of so many words of instructions; nothing where it is too long.
func (p *process) lines(body, size uint64) (l lines, err error) {
	b, err := p.Part(body+bodyFirst, p.layout.lines+linesBytes-bodyFirst)
	if err != nil {
		return l, err
	}
	first := interpreter.Pointer(b, 0)
	if l.first = int(int32(first)); p.layout.firstIsValue {
		l.first = int(int64(first) >> 1)
	}
	b = b[p.layout.lines-bodyFirst:]
	entriesAt, tableAt := interpreter.Pointer(b, linesEntries), interpreter.Pointer(b, linesTable)
	entries := binary.LittleEndian.Uint32(b[linesSize:])
	if entries == 0 || entries > maxEntries || entries > 1 && tableAt == 0 {
		return l, nil
	}
	raw := make([]byte, entryBytes*entries)
	if err := p.Read(entriesAt, raw); err != nil {
		return l, err
	}
	for ; len(raw) > 0; raw = raw[entryBytes:] {
		l.lines = append(l.lines, int32(binary.LittleEndian.Uint32(raw)))
	}
	if entries == 1 {
		return l, nil
	}
	words := (size + 8) / 9
	if size >= immediate {
		words = immediateWords + (size-immediate+blockBits-1)/blockBits*perBlock
	}
	raw = make([]byte, 8*words)
	if err := p.Read(tableAt, raw); err != nil {
		return l, err
	}
	for ; len(raw) > 0; raw = raw[8:] {
		l.ranks = append(l.ranks, interpreter.Pointer(raw, 0))
	}
	return l, nil
}

// of is the line of the instruction before this one, which is the next; false where it is not known, or the function
// begins.
func (l *lines) of(next uint64) (line int, known bool) {
	rank := uint64(1)
	if len(l.lines) > 1 {
		rank = l.rank(max(next, 1) - 1)
	}
	if rank == 0 || rank > uint64(len(l.lines)) {
		return l.first, false
	}
	return int(l.lines[rank-1]), next > 0
}

// rank is how many lines begin at an instruction, or before it.
func (l *lines) rank(at uint64) uint64 {
	if at < immediate {
		if at/9 >= uint64(len(l.ranks)) {
			return 0
		}
		return l.ranks[at/9] >> (at % 9 * 7) & 0x7f
	}
	at -= immediate
	i := immediateWords + at/blockBits*perBlock
	if i+perBlock > uint64(len(l.ranks)) {
		return 0
	}
	block, part, bit := l.ranks[i:][:perBlock], at%blockBits/64, at%64
	rank := block[0]&0xffffffff + uint64(bits.OnesCount64(block[2+part]<<(63-bit)))
	if part > 0 {
		rank += block[1] >> ((part - 1) * 9) & 0x1ff
	}
	return rank
}
