package recording

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"io"
	"math"
	"math/bits"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// HistogramSum is the sum of the histograms of all seconds of one path.
type HistogramSum struct {
	Node, Op string
	Sum      *hdrhistogram.Histogram // of nanoseconds
}

// HistogramSums are the sums of the histograms of a source, in the order of their first rows. A damaged row is as good
// as none. They are computed once, and are not to be changed.
func (r *Recording) HistogramSums(source string) []HistogramSum {
	if out, known := r.sums[source]; known {
		return out
	}
	all := &sums{}
	for _, h := range r.Histograms {
		if h.Source == source {
			all.add(h)
		}
	}
	if r.sums == nil {
		r.sums = map[string][]HistogramSum{}
	}
	r.sums[source] = all.done()
	return r.sums[source]
}

// sums adds up histograms of one source.
type sums struct {
	paths   []HistogramSum
	parts   []*adder // of paths
	at      map[[2]string]int
	decoder decoder
}

func (s *sums) add(h Histogram) {
	path := [2]string{h.Node, h.Op}
	i, seen := s.at[path]
	if !seen {
		if s.at == nil {
			s.at = map[[2]string]int{}
		}
		i = len(s.paths)
		s.at[path] = i
		s.paths, s.parts = append(s.paths, HistogramSum{Node: h.Node, Op: h.Op}), append(s.parts, &adder{})
	}
	s.parts[i].add(&s.decoder, h.HDR)
}

func (s *sums) done() []HistogramSum {
	for i, p := range s.parts {
		s.paths[i].Sum = p.sum()
	}
	return slices.DeleteFunc(s.paths, func(h HistogramSum) bool { return h.Sum == nil })
}

// adder adds up histograms. A day has hundreds of thousands, nearly all of one shape: a histogram is made for the first
// of a shape, and the counts of the others are added to it.
type adder struct {
	all   *hdrhistogram.Histogram // without the counts below
	shape []byte                  // of the counts: the part of the encoding that says what they are of
	of    *hdrhistogram.Snapshot
}

func (a *adder) add(d *decoder, hdr []byte) {
	shape, counts, ok := d.decode(hdr)
	if ok && a.of != nil && bytes.Equal(shape, a.shape) && addCounts(a.of.Counts, counts) {
		return
	}
	one, err := hdrhistogram.Decode(hdr)
	if err != nil {
		return
	}
	if ok && a.of == nil {
		a.shape, a.of = bytes.Clone(shape), one.Export()
		return
	}
	if a.all == nil {
		a.all = hdrhistogram.New(one.LowestTrackableValue(), one.HighestTrackableValue(), int(one.SignificantFigures()))
	}
	a.all.Merge(one)
}

func (a *adder) sum() *hdrhistogram.Histogram {
	if a.of == nil {
		return a.all
	}
	h := hdrhistogram.Import(a.of)
	if a.all != nil {
		h.Merge(a.all)
	}
	return h
}

// addCounts adds counts to others, or none if it cannot.
func addCounts(into []int64, counts []int64) bool {
	const most = 1 << 40 // more calls are none of a second
	i := 0
	for _, n := range counts {
		if n > most || n < -int64(len(into)) {
			return false
		}
		if i += int(max(1, -n)); i > len(into) {
			return false
		}
	}
	i = 0
	for _, n := range counts {
		if n >= 0 {
			into[i] += n
		}
		i += int(max(1, -n))
	}
	return true
}

// decoder reads encoded histograms without a new zlib reader for each, which is most of the work.
type decoder struct {
	zlib           io.ReadCloser
	packed, opened bytes.Buffer
	counts         []int64
}

// decode gives the counts of an encoded histogram, a number below 0 being so many zeros, and its shape. Both are valid
// until the next call. False: this is no encoding as the library writes it.
func (d *decoder) decode(hdr []byte) (shape []byte, counts []int64, ok bool) {
	const head, before = 8, 40 // bytes: the cookie and the length; the same, and the shape, when it is opened
	d.packed.Reset()
	packed, err := base64.StdEncoding.AppendDecode(d.packed.AvailableBuffer(), hdr)
	if err != nil || len(packed) < head || int(binary.BigEndian.Uint32(packed[4:])) != len(packed)-head {
		return nil, nil, false
	}
	d.packed.Write(packed) // its memory is used again
	if err := d.open(packed[head:]); err != nil {
		return nil, nil, false
	}
	b := d.opened.Bytes()
	if len(b) < before || int(binary.BigEndian.Uint32(b[4:])) != len(b)-before {
		return nil, nil, false
	}
	shape, d.counts = b[8:before], d.counts[:0]
	for b = b[before:]; len(b) > 0; {
		v, n := binary.Varint(b)
		if n <= 0 || n > 8 { // of nine bytes the library writes the last otherwise
			return nil, nil, false
		}
		d.counts, b = append(d.counts, v), b[n:]
	}
	return shape, d.counts, true
}

// open inflates what is packed.
func (d *decoder) open(packed []byte) (err error) {
	const most = 1 << 20 // bytes; one histogram is a few kB
	if d.zlib == nil {
		d.zlib, err = zlib.NewReader(bytes.NewReader(packed))
	} else {
		err = d.zlib.(zlib.Resetter).Reset(bytes.NewReader(packed), nil)
	}
	if err != nil {
		return err
	}
	d.opened.Reset()
	n, err := d.opened.ReadFrom(io.LimitReader(d.zlib, most))
	if err == nil && n == most {
		err = io.ErrShortBuffer
	}
	return err
}

// HistogramReader reads the counts of encoded histograms, one after the other, without making a histogram of each. It
// is for one goroutine.
type HistogramReader struct{ decoder decoder }

// mostCounts bounds the numbers of one histogram that a reader follows: more have none of ours.
const mostCounts = 1 << 20

// Each calls visit for each step that has calls: the least value of the step in nanoseconds, and how many. It reports
// whether hdr is an encoding as the library writes it; if not, it may have called visit.
func (r *HistogramReader) Each(hdr []byte, visit func(ns, calls int64)) bool {
	shape, counts, ok := r.decoder.decode(hdr)
	if !ok {
		return false
	}
	lowest, digits := int64(binary.BigEndian.Uint64(shape[8:])), int64(binary.BigEndian.Uint32(shape[4:]))
	if lowest < 1 || digits < 1 || digits > 5 {
		return false
	}
	steps := 1 // of a unit that are told apart at least: 2 * 10^digits, as a power of two
	for largest := 2 * int64(math.Pow10(int(digits))); int64(1)<<steps < largest; {
		steps++
	}
	unit, half := bits.Len64(uint64(lowest))-1, steps-1
	at := 0
	for _, n := range counts {
		if n < 0 {
			if at -= int(max(n, -mostCounts)); at > mostCounts {
				return false
			}
			continue
		}
		if n > 0 {
			power, step := at>>half-1, at&(1<<half-1)+1<<half
			if power < 0 {
				power, step = 0, step-1<<half
			}
			if power+unit+half >= 62 {
				return false
			}
			visit(int64(step)<<(power+unit), n)
		}
		at++
	}
	return true
}
