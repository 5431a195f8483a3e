package capture

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"github.com/klauspost/compress/zstd"
)

// Bounds of a file that anybody may have written.
const (
	// maxDry is how many bytes of a file may hold no packet: a pcapng file has other blocks, which are kept.
	maxDry = 64 << 20
	// maxNames is how many interfaces and names of hosts a pcapng file may have.
	maxNames = 10_000
	// zstdMemory is the largest window of a zstd file.
	zstdMemory = 128 << 20
)

// First bytes of a file.
var (
	magicGzip = []byte{0x1f, 0x8b}
	magicZstd = []byte{0x28, 0xb5, 0x2f, 0xfd}
	magicNg   = []byte{0x0a, 0x0d, 0x0d, 0x0a}
)

// pcapMagics are those of pcap files, in both byte orders, of microseconds and nanoseconds.
var pcapMagics = map[uint32]bool{0xa1b2c3d4: true, 0xd4c3b2a1: true, 0xa1b23c4d: true, 0x4d3cb2a1: true}

// Is reports whether a file that begins so is a capture, or compressed, which a recording never is.
func Is(head []byte) bool {
	return bytes.HasPrefix(head, magicGzip) || bytes.HasPrefix(head, magicZstd) || bytes.HasPrefix(head, magicNg) ||
		len(head) >= 4 && pcapMagics[binary.LittleEndian.Uint32(head)]
}

// Flags of TCP.
const (
	flagFIN = 1 << iota
	flagSYN
	flagRST
	flagACK
)

// packet is a TCP segment, as far as the file has it.
type packet struct {
	ns       int64 // since the Unix epoch
	tcp      bool  // else it is something else, or cut before its data
	src, dst netip.AddrPort
	seq, ack uint32
	flags    uint8
	window   uint16
	id       uint16 // of IPv4, 0 where it has none
	stamp    uint32 // TSval
	payload  []byte // valid until the next packet
	size     int    // of the payload on the wire: more than is there, if it was cut
}

// packets reads the packets of a file one by one, without keeping them.
type packets struct {
	in     *counted
	closes func()
	ng     *pcapgo.NgReader
	pcap   *pcapgo.Reader
	decoder
}

// counted counts the bytes since the last packet.
type counted struct {
	io.Reader
	dry int64
}

func (c *counted) Read(b []byte) (int, error) {
	if c.dry > maxDry {
		return 0, fmt.Errorf("it has no packet in %d MB", maxDry>>20)
	}
	n, err := c.Reader.Read(b)
	c.dry += int64(n)
	return n, err
}

// openPackets reads the header of a file.
func openPackets(file io.Reader) (*packets, error) {
	s := &packets{closes: func() {}}
	in := bufio.NewReaderSize(file, 256<<10)
	in, err := s.unpack(in)
	if err != nil {
		return nil, err
	}
	head, err := in.Peek(4)
	if err != nil {
		return nil, notCapture(err, "it is empty or cut within its header")
	}
	s.in = &counted{Reader: in}
	if bytes.Equal(head, magicNg) {
		s.ng, err = pcapgo.NewNgReader(s.in, pcapgo.NgReaderOptions{WantMixedLinkType: true, SkipUnknownVersion: true})
	} else if pcapMagics[binary.LittleEndian.Uint32(head)] {
		s.pcap, err = pcapgo.NewReader(s.in)
	} else {
		return nil, fmt.Errorf("%w: what is compressed in it is none", ErrNotCapture)
	}
	if err != nil {
		return nil, notCapture(err, "it is cut within its header")
	}
	s.decoder.init()
	return s, nil
}

func notCapture(err error, short string) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: %s", ErrNotCapture, short)
	}
	return fmt.Errorf("%w: %w", ErrNotCapture, err)
}

// unpack decompresses where the file is compressed.
func (s *packets) unpack(in *bufio.Reader) (*bufio.Reader, error) {
	head, _ := in.Peek(4)
	switch {
	case bytes.HasPrefix(head, magicGzip):
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, notCapture(err, "it is cut within its header")
		}
		return bufio.NewReaderSize(z, 256<<10), nil
	case bytes.HasPrefix(head, magicZstd):
		z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(zstdMemory))
		if err != nil {
			return nil, notCapture(err, "it is cut within its header")
		}
		s.closes = z.Close
		return bufio.NewReaderSize(z, 256<<10), nil
	}
	return in, nil
}

func (s *packets) close() { s.closes() }

// dropped is how many packets are missing in a pcapng file, by what its maker says in it.
func (s *packets) dropped() (n int64) {
	if s.ng == nil {
		return 0
	}
	for i := range s.ng.NInterfaces() {
		in, err := s.ng.Interface(i)
		if d := in.Statistics.PacketsDropped; err == nil && d != pcapgo.NgNoValue64 {
			n = saturated(n + int64(min(d, math.MaxInt64)))
		}
	}
	return n
}

// next reads a packet. Its error says why the file ends here; io.EOF: it is whole.
func (s *packets) next(p *packet) error {
	var data []byte
	var ci gopacket.CaptureInfo
	var err error
	link := layers.LinkType(0)
	if s.ng != nil {
		if data, ci, err = s.ng.ZeroCopyReadPacketData(); err == nil {
			link, _ = ci.AncillaryData[0].(layers.LinkType)
		}
		if s.ng.NInterfaces()+s.ng.NNames() > maxNames {
			return fmt.Errorf("it has more than %d interfaces and names", maxNames)
		}
	} else {
		data, ci, err = s.pcap.ZeroCopyReadPacketData()
		link = s.pcap.LinkType()
	}
	switch {
	case err == io.EOF:
		return err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the file is cut within a packet")
	case err != nil:
		return fmt.Errorf("the file is damaged (%w)", err)
	}
	s.in.dry = 0
	*p = packet{ns: ci.Timestamp.UnixNano()}
	s.decode(link, data, max(ci.Length-ci.CaptureLength, 0), p)
	return nil
}
