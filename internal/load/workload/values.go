package workload

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// Content is the content of values.
type Content struct {
	zeros float64  // share of the bytes that are zero, in runs: 0 is random, 1 all zero
	lines [][]byte // instead, these values as they are
}

// ParseContent reads "random"; "compressible:SHARE%", of which so much is zeros, in runs; "zero"; "file:PATH", a value
// per line, whatever the sizes are. read gets the file.
func ParseContent(text string, read func(path string) ([]byte, error)) (Content, error) {
	name, argument, _ := strings.Cut(text, ":")
	switch {
	case text == "random":
		return Content{}, nil
	case text == "zero":
		return Content{zeros: 1}, nil
	case name == "compressible":
		percent, err := strconv.ParseFloat(strings.TrimSuffix(argument, "%"), 64)
		if err == nil && percent >= 0 && percent <= 100 {
			return Content{zeros: percent / 100}, nil
		}
	case name == "file":
		body, err := read(argument)
		if err != nil {
			return Content{}, usage("values: %v", err)
		}
		lines := bytes.Split(bytes.TrimSuffix(body, []byte("\n")), []byte("\n"))
		if len(body) == 0 || len(lines) == 0 {
			return Content{}, usage("values: %s is empty; it should have a value per line", argument)
		}
		return Content{lines: lines}, nil
	}
	return Content{}, usage("content of values %q: want random, compressible:50%%, zero or file:PATH", text)
}

const (
	// fits into the second level cache; the windows of compressors in servers are smaller (LZF: 8 KiB)
	poolBytes = 64 << 10
	markBytes = 8  // at the start of a value, to identify its key and size
	runBytes  = 64 // of which a share is zeros, where values are compressible
)

// values makes the value of a key: a mark, and a part of a pool of random bytes. Both are a function of the seed, the
// key and the size, so that a reader knows what any writer wrote. It is not changed after newValues.
type values struct {
	sizes   Sizes
	content Content
	seed    uint64
	pool    []byte // twice the same poolBytes, so that every part of poolBytes is contiguous
}

func newValues(sizes Sizes, content Content, seed uint64) values {
	v := values{sizes: sizes, content: content, seed: seed, pool: make([]byte, 2*poolBytes)}
	r := newRNG(seed)
	for i := 0; i < poolBytes; i += 8 {
		binary.LittleEndian.PutUint64(v.pool[i:], r.next())
	}
	for i := 0; i < poolBytes; i += runBytes {
		clear(v.pool[i : i+int(content.zeros*runBytes+0.5)])
	}
	copy(v.pool[poolBytes:], v.pool[:poolBytes])
	return v
}

// mark is a hash of seed, key and size, as in wyhash.
func (v *values) mark(key uint64, size int) uint64 {
	hi, lo := bits.Mul64(key^v.seed^0xa0761d6478bd642f, uint64(size)^0xe7037ed1a0b428db)
	hi, lo = bits.Mul64(hi^lo^0x8ebc6af09c88c6e3, key^0x589965cc75374cc3)
	return hi ^ lo
}

// size draws the size of a key's value; where values are lines of a file, the key alone decides.
func (v *values) size(r *rng, key uint64) int {
	if v.content.lines != nil {
		return len(v.line(key))
	}
	return v.sizes.draw(r)
}

// mean is the mean size.
func (v *values) mean() float64 {
	if v.content.lines == nil {
		return v.sizes.Mean()
	}
	total := 0
	for _, l := range v.content.lines {
		total += len(l)
	}
	return float64(total) / float64(len(v.content.lines))
}

// fixed is the size, if all values have the same.
func (v *values) fixed() (int, bool) {
	if v.content.lines != nil {
		return 0, false
	}
	return v.sizes.fixed()
}

func (v *values) line(key uint64) []byte {
	return v.content.lines[v.mark(key, 0)%uint64(len(v.content.lines))]
}

// append appends the value of a key in a size that size gave.
func (v *values) append(dst []byte, key uint64, size int) []byte {
	if v.content.lines != nil {
		return append(dst, v.line(key)...)
	}
	mark, at := v.mark(key, size), len(dst)
	if size <= markBytes {
		return binary.LittleEndian.AppendUint64(dst, mark)[:at+size]
	}
	start := int(mark % poolBytes)
	for left := size; left > 0; left -= poolBytes {
		dst = append(dst, v.pool[start:start+min(left, poolBytes)]...)
	}
	binary.LittleEndian.PutUint64(dst[at:], mark)
	return dst
}

// ErrWrongValue: the workload did not write this value for the key.
var ErrWrongValue = errors.New("wrong value")

// check checks a value that was read. It allocates only for an error.
func (v *values) check(got []byte, key uint64) error {
	if v.content.lines != nil {
		if want := v.line(key); !bytes.Equal(got, want) {
			return fmt.Errorf("%w: key %d has %s, not the %d bytes of its line", ErrWrongValue, key, sample(got),
				len(want))
		}
		return nil
	}
	if !v.sizes.has(len(got)) {
		return fmt.Errorf("%w: key %d has %d bytes, a size that is never written", ErrWrongValue, key, len(got))
	}
	var mark [markBytes]byte
	m := v.mark(key, len(got))
	binary.LittleEndian.PutUint64(mark[:], m)
	n := min(len(got), markBytes)
	if !bytes.Equal(got[:n], mark[:n]) {
		return fmt.Errorf("%w: key %d has %s, which is not marked as its own: another key's value, one cut short, or "+
			"of another seed", ErrWrongValue, key, sample(got))
	}
	start := int(m % poolBytes)
	for from := 0; from < len(got); from += poolBytes {
		until := min(from+poolBytes, len(got))
		skip := max(n-from, 0)
		piece, want := got[from+skip:until], v.pool[start+skip:start+until-from]
		if !bytes.Equal(piece, want) {
			return fmt.Errorf("%w: key %d differs at byte %d of %d", ErrWrongValue, key,
				from+skip+firstDifference(piece, want), len(got))
		}
	}
	return nil
}

func firstDifference(a, b []byte) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return len(a)
}

// sample is the start of a value, quoted, for messages.
func sample(value []byte) string {
	const enough = 16
	if len(value) > enough {
		return fmt.Sprintf("%d bytes beginning %q", len(value), value[:enough])
	}
	return fmt.Sprintf("%q", value)
}
