package recording

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"sync"

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

// EncodeHistogram is Histogram.HDR of a histogram: what its method Encode gives, in a tenth of the time. A watch does
// so every second for each command.
func EncodeHistogram(h *hdrhistogram.Histogram) ([]byte, error) {
	x := h.Export()
	p := packers.Get().(*hdrPacker)
	defer packers.Put(p)
	last := len(x.Counts) - 1
	for last >= 0 && x.Counts[last] == 0 {
		last--
	}
	b := append(p.counts[:0], make([]byte, hdrHead)...)
	for i := 0; i <= last; i++ {
		n := x.Counts[i]
		if n < 0 || n > maxHDRCount {
			return h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
		}
		for n == 0 { // a run of zeros is a negative number
			from := i
			for x.Counts[i] == 0 {
				i++
			}
			b = binary.AppendVarint(b, -int64(i-from))
			n = x.Counts[i]
		}
		b = binary.AppendVarint(b, n)
	}
	binary.BigEndian.PutUint32(b, hdrCookie)
	binary.BigEndian.PutUint32(b[4:], uint32(len(b)-hdrHead))
	binary.BigEndian.PutUint32(b[12:], uint32(x.SignificantFigures))
	binary.BigEndian.PutUint64(b[16:], uint64(x.LowestTrackableValue))
	binary.BigEndian.PutUint64(b[24:], uint64(x.HighestTrackableValue))
	binary.BigEndian.PutUint64(b[32:], math.Float64bits(1))
	p.counts = b
	return p.pack()
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
