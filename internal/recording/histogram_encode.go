package recording

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
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
)

// packers are compressors that are used again: a new one takes 800 kB.
var packers = sync.Pool{New: func() any {
	w, _ := zlib.NewWriterLevel(nil, zlib.BestSpeed) // a level that there is
	return &hdrPacker{zlib: w}
}}

type hdrPacker struct {
	zlib   *zlib.Writer
	counts []byte
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
	last := len(counts) - 1
	for last >= 0 && counts[last] == 0 {
		last--
	}
	b := append(p.counts[:0], make([]byte, hdrHead)...)
	for i := 0; i <= last; i++ {
		n := counts[i]
		if n < 0 || n > maxHDRCount {
			return nil, errHDRCount
		}
		for n == 0 { // a run of zeros is a negative number
			from := i
			for counts[i] == 0 {
				i++
			}
			b = binary.AppendVarint(b, -int64(i-from))
			n = counts[i]
		}
		b = binary.AppendVarint(b, n)
	}
	binary.BigEndian.PutUint32(b, hdrCookie)
	binary.BigEndian.PutUint32(b[4:], uint32(len(b)-hdrHead))
	binary.BigEndian.PutUint32(b[12:], uint32(figures))
	binary.BigEndian.PutUint64(b[16:], uint64(lowest))
	binary.BigEndian.PutUint64(b[24:], uint64(highest))
	binary.BigEndian.PutUint64(b[32:], math.Float64bits(1))
	p.counts = b
	return p.pack()
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
	octave := max(bits.Len64(uint64(ns))-latencyHalfBits-1, 0)
	c.counts[octave<<latencyHalfBits+int(ns>>octave)] += n
}

// Reset forgets all.
func (c *LatencyCounts) Reset() { clear(c.counts[:]) }

// Encode is Histogram.HDR of it.
func (c *LatencyCounts) Encode() ([]byte, error) {
	return encodeCounts(c.counts[:], latencyFigures, 1, int64(LatencyMost))
}

// pack compresses the counts.
func (p *hdrPacker) pack() ([]byte, error) {
	p.packed.Reset()
	p.packed.Write(make([]byte, hdrPackedHead))
	p.zlib.Reset(&p.packed)
	if _, err := p.zlib.Write(p.counts); err != nil {
		return nil, fmt.Errorf("packing a histogram: %w", err)
	}
	if err := p.zlib.Close(); err != nil {
		return nil, fmt.Errorf("packing a histogram: %w", err)
	}
	b := p.packed.Bytes()
	binary.BigEndian.PutUint32(b, hdrPackedCookie)
	binary.BigEndian.PutUint32(b[4:], uint32(len(b)-hdrPackedHead))
	return base64.StdEncoding.AppendEncode(nil, b), nil
}
