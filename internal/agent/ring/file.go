package ring

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"

	"slowpath/internal/agent/folder"
)

// A file of the ring is a magic and blocks, each with a head:
//
//	uint32 checksum (CRC-32C) of all that follows in the head, and of the packed rows
//	uint32 length of the packed rows, uint32 of the rows, uint32 their number, uint32 flags
//	int64  when the block began and ended, nanoseconds since the epoch by the ring's clock
//
// Numbers are little-endian. A block is written at once: of a file that was cut, all whole blocks are read.
const (
	magic     = "slowpath ring 1\n"
	headBytes = 4 + 4*4 + 2*8
	// suffix of a file of the ring, whose name is its number; damagedSuffix of one that was set aside.
	suffix        = ".ring"
	damagedSuffix = ".damaged"
	maxRaw        = 64 << 20 // bytes of the rows of a block: what is carried over is the most
	maxFiles      = 10_000
	flagCarried   = 1 // its rows are what held when the file began
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// block is rows that were written within a time.
type block struct {
	raw     []byte
	rows    int
	fromNs  int64
	toNs    int64
	carried bool
	opens   bool // a file begins with it
}

// packer compresses blocks; it is for one goroutine.
type packer struct{ zstd *zstd.Encoder }

func newPacker() (*packer, error) {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(128<<10), zstd.WithEncoderCRC(false))
	return &packer{z}, err
}

// pack is a block as it is in the file.
func (p *packer) pack(b *block) []byte {
	out := make([]byte, headBytes, headBytes+len(b.raw)/3)
	out = p.zstd.EncodeAll(b.raw, out)
	flags := uint32(0)
	if b.carried {
		flags = flagCarried
	}
	for i, n := range [...]uint32{uint32(len(out) - headBytes), uint32(len(b.raw)), uint32(b.rows), flags} {
		binary.LittleEndian.PutUint32(out[4+4*i:], n)
	}
	binary.LittleEndian.PutUint64(out[20:], uint64(b.fromNs))
	binary.LittleEndian.PutUint64(out[28:], uint64(b.toNs))
	binary.LittleEndian.PutUint32(out, crc32.Checksum(out[4:], castagnoli))
	return out
}

// head is that of a block in a file.
type head struct {
	checksum, packed, raw, rows, flags uint32
	fromNs, toNs                       int64
}

func headOf(b []byte) (h head, ok bool) {
	for i, n := range [...]*uint32{&h.checksum, &h.packed, &h.raw, &h.rows, &h.flags} {
		*n = binary.LittleEndian.Uint32(b[4*i:])
	}
	h.fromNs = int64(binary.LittleEndian.Uint64(b[20:]))
	h.toNs = int64(binary.LittleEndian.Uint64(b[28:]))
	const latest = int64(1) << 62
	return h, h.raw <= maxRaw && h.packed <= maxRaw && h.fromNs >= 0 && h.toNs >= h.fromNs && h.toNs < latest
}

// file is one of the ring.
type file struct {
	name   string
	number int64
	bytes  int64 // whole blocks
	rows   int64
	fromNs int64 // of its first block
	toNs   int64 // of its last one
	// cut is how many bytes behind the last whole block were not read: its writer was killed.
	cut int64
}

// nameOf names files so that their names sort as their numbers do.
func nameOf(number int64) string { return fmt.Sprintf("%012d%s", number, suffix) }

// numberOf is the number of a file by its name.
func numberOf(name string) (int64, bool) {
	digits, ok := strings.CutSuffix(name, suffix)
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, ok && err == nil && n > 0 && len(digits) == 12
}

// scan reads the heads of a file's blocks.
func scan(in *folder.Folder, name string, number int64) (*file, error) {
	f, err := in.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	start := make([]byte, len(magic))
	if _, err := f.ReadAt(start, 0); err != nil || string(start) != magic {
		return nil, errDamaged
	}
	out := &file{name: name, number: number, bytes: int64(len(magic))}
	var b [headBytes]byte
	for {
		if _, err := f.ReadAt(b[:], out.bytes); err != nil {
			break
		}
		h, ok := headOf(b[:])
		if !ok || out.bytes+headBytes+int64(h.packed) > st.Size() {
			break
		}
		if out.fromNs == 0 {
			out.fromNs = h.fromNs
		}
		out.toNs = max(out.toNs, h.toNs)
		out.rows += int64(h.rows)
		out.bytes += headBytes + int64(h.packed)
	}
	out.cut = st.Size() - out.bytes
	if out.fromNs == 0 {
		return nil, errDamaged
	}
	return out, nil
}

// create makes a file with this number.
func create(in *folder.Folder, number int64) (*os.File, *file, error) {
	name := nameOf(number)
	f, err := in.Create(name)
	if err != nil {
		return nil, nil, err
	}
	if _, err := f.Write([]byte(magic)); err != nil {
		f.Close()
		_ = in.Remove(name)
		return nil, nil, err
	}
	return f, &file{name: name, number: number, bytes: int64(len(magic))}, nil
}

// reader reads the blocks of a file that is open, up to a size.
type reader struct {
	file *os.File
	size int64
	at   int64
	zstd *zstd.Decoder
}

// next reads the next block. Its error is io.EOF at the end, and errDamaged where a block is none: what follows is then
// read if its head could be.
func (r *reader) next() (*block, error) {
	if r.at == 0 {
		r.at = int64(len(magic))
	}
	var b [headBytes]byte
	if r.at+headBytes > r.size {
		return nil, io.EOF
	}
	if _, err := r.file.ReadAt(b[:], r.at); err != nil {
		return nil, io.EOF // it was cut meanwhile
	}
	h, ok := headOf(b[:])
	if !ok || r.at+headBytes+int64(h.packed) > r.size {
		r.at = r.size
		return nil, errDamaged
	}
	packed := make([]byte, h.packed)
	_, err := r.file.ReadAt(packed, r.at+headBytes)
	r.at += headBytes + int64(h.packed)
	if err != nil {
		return nil, errDamaged
	}
	if crc32.Update(crc32.Checksum(b[4:], castagnoli), castagnoli, packed) != h.checksum {
		return nil, errDamaged
	}
	raw, err := r.zstd.DecodeAll(packed, make([]byte, 0, h.raw))
	if err != nil || len(raw) != int(h.raw) {
		return nil, errDamaged
	}
	return &block{
		raw: raw, rows: int(h.rows), fromNs: h.fromNs, toNs: h.toNs, carried: h.flags&flagCarried != 0,
	}, nil
}

func newUnpacker() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxRaw),
		zstd.WithDecoderLowmem(true))
}

var errNoRoom = errors.New("no block fits into the bound of the ring")
