package recording

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/adler32"
	"math"
	"math/bits"
	"slices"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Cookies of the format (HdrHistogram V2, https://github.com/HdrHistogram/HdrHistogram): of counts, and of such counts
// compressed.
const (
	hdrCookie       = 0x1c849303 | 0x10
	hdrPackedCookie = 0x1c849304 | 0x10
	hdrHead         = 40 // bytes before the counts
	hdrPackedHead   = 8
	maxHDRCount     = 1 << 54 // larger ones have another form in the ninth byte
	hdrStored       = 96      // bytes; so few counts, as most seconds have, are not compressed
)

// packers are used again: their compressor takes 800 kB.
var packers = sync.Pool{New: func() any { return &hdrPacker{} }}

type hdrPacker struct {
	zlib   *zlib.Writer // nil: nothing was compressed yet
	counts []byte       // behind a head
	next   int          // index of the next count
	packed bytes.Buffer
}

// EncodeHistogram is Histogram.HDR of a histogram: what its method Encode gives, in a tenth of the time. What is
// encoded every second for each command is in LatencyCounts.
func EncodeHistogram(h *hdrhistogram.Histogram) ([]byte, error) {
	x := h.Export()
	b, err := encodeCounts(x.Counts, x.SignificantFigures, x.LowestTrackableValue, x.HighestTrackableValue)
	if errors.Is(err, errHDRCount) {
		return h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	}
	return b, err
}

var errHDRCount = errors.New("a count of a histogram is out of bounds")

// encodeCounts is Histogram.HDR of the counts of a histogram.
func encodeCounts(counts []int64, figures, lowest, highest int64) ([]byte, error) {
	p := packers.Get().(*hdrPacker)
	defer packers.Put(p)
	p.begin()
	for at, n := range counts {
		if n < 0 || n > maxHDRCount {
			return nil, errHDRCount
		}
		if n > 0 {
			p.count(at, n)
		}
	}
	return p.pack(figures, lowest, highest)
}

// EncodeTimes is Histogram.HDR of so few times that a histogram of them, which has thousands of counts, is not worth
// its memory: of those that were recorded in nanoseconds in one from lowest to highest with so many significant figures
// (1 to 5). It sorts them.
func EncodeTimes(ns []int64, lowest, highest int64, figures int) ([]byte, error) {
	p := packers.Get().(*hdrPacker)
	defer packers.Put(p)
	p.begin()
	slices.Sort(ns)
	unit, half := bits.Len64(uint64(lowest))-1, bits.Len64(2*uint64(math.Pow10(figures))-1)-1
	for i := 0; i < len(ns); {
		at, n := hdrStep(ns[i]>>unit, half), int64(0)
		for ; i < len(ns) && hdrStep(ns[i]>>unit, half) == at; i++ {
			n++
		}
		p.count(at, n)
	}
	return p.pack(int64(figures), lowest, highest)
}

// hdrStep is the index of a value, in units of the histogram, among its counts: an octave has 1 << half of them.
func hdrStep(v int64, half int) int {
	octave := max(bits.Len64(uint64(v))-half-1, 0)
	return octave<<half + int(v>>octave)
}

// LatencyCounts counts latencies to be encoded again and again: a histogram of the library is copied for that. Its
// steps are those of a histogram from 1 ns to LatencyMost with 2 significant figures. The zero value is empty.
type LatencyCounts struct{ counts [latencySteps]int64 }

// LatencyMost is the longest latency that LatencyCounts tells from others.
const LatencyMost = time.Minute

const (
	latencyFigures  = 2
	latencyHalfBits = 7 // half of the 256 steps of an octave: the next power of two for 2 significant figures
	// latencyOctaves are needed until 256 << n is more than LatencyMost.
	latencyOctaves = 29
	latencySteps   = (latencyOctaves + 1) << latencyHalfBits
)

// Add counts n latencies of ns nanoseconds each; longer ones than LatencyMost as LatencyMost.
func (c *LatencyCounts) Add(ns, n int64) {
	ns = min(max(ns, 0), int64(LatencyMost))
	c.counts[hdrStep(ns, latencyHalfBits)] += n
}

// Reset forgets all.
func (c *LatencyCounts) Reset() { clear(c.counts[:]) }

// Encode is Histogram.HDR of it.
func (c *LatencyCounts) Encode() ([]byte, error) {
	return encodeCounts(c.counts[:], latencyFigures, 1, int64(LatencyMost))
}

// begin begins a histogram.
func (p *hdrPacker) begin() { p.counts, p.next = append(p.counts[:0], make([]byte, hdrHead)...), 0 }

// count adds a count that is not 0, behind those before it.
func (p *hdrPacker) count(at int, n int64) {
	if at > p.next { // a run of zeros is a negative number
		p.counts = binary.AppendVarint(p.counts, -int64(at-p.next))
	}
	p.counts, p.next = binary.AppendVarint(p.counts, n), at+1
}

// pack ends it, and compresses it where that is worth it.
func (p *hdrPacker) pack(figures, lowest, highest int64) ([]byte, error) {
	b := p.counts
	binary.BigEndian.PutUint32(b, hdrCookie)
	binary.BigEndian.PutUint32(b[4:], uint32(len(b)-hdrHead))
	binary.BigEndian.PutUint32(b[12:], uint32(figures))
	binary.BigEndian.PutUint64(b[16:], uint64(lowest))
	binary.BigEndian.PutUint64(b[24:], uint64(highest))
	binary.BigEndian.PutUint64(b[32:], math.Float64bits(1))
	p.packed.Reset()
	p.packed.Write(make([]byte, hdrPackedHead))
	if len(b) <= hdrStored {
		p.store()
	} else if err := p.compress(); err != nil {
		return nil, fmt.Errorf("packing a histogram: %w", err)
	}
	b = p.packed.Bytes()
	binary.BigEndian.PutUint32(b, hdrPackedCookie)
	binary.BigEndian.PutUint32(b[4:], uint32(len(b)-hdrPackedHead))
	return base64.StdEncoding.AppendEncode(nil, b), nil
}

// compress writes the counts as zlib does.
func (p *hdrPacker) compress() error {
	if p.zlib == nil {
		p.zlib, _ = zlib.NewWriterLevel(nil, zlib.BestSpeed) // a level that there is
	}
	p.zlib.Reset(&p.packed)
	if _, err := p.zlib.Write(p.counts); err != nil {
		return err
	}
	return p.zlib.Close()
}

// store writes the counts as zlib does where it does not compress (RFC 1950, 1951): a header, one block that is the
// last, its length twice, and a checksum.
func (p *hdrPacker) store() {
	n := uint16(len(p.counts))
	p.packed.Write([]byte{0x78, 0x01, 0x01, byte(n), byte(n >> 8), ^byte(n), ^byte(n >> 8)})
	p.packed.Write(p.counts)
	p.packed.Write(binary.BigEndian.AppendUint32(nil, adler32.Checksum(p.counts)))
}
