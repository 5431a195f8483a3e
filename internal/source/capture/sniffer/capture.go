// Package sniffer captures packets of this host's interfaces into a ring of files, as tcpdump does. It looks at no
// packet: a filter in the kernel chooses those of the servers, and they are written as they are.
package sniffer

import (
	"errors"
	"net/netip"
	"time"
)

// Any is the name of all interfaces together.
const Any = "any"

// MaxPacket is the longest packet in bytes that is captured: with segmentation offload a segment has up to 64 KiB.
const MaxPacket = 256 << 10

// Why nothing is captured.
var (
	ErrNoInterface = errors.New("no such interface")
	ErrRights      = errors.New("capturing packets needs the capability CAP_NET_RAW")
	ErrDown        = errors.New("the interface went down, or is gone")
)

// Options of a capture.
type Options struct {
	Interface string           // a name, or Any
	Servers   []netip.AddrPort // whose packets are kept; 0.0.0.0 is any address
	SnapBytes int              // of each packet are kept
	Files     Files
	Program   string // what is named as the maker of the files
	Filter    string // the filter in words
	Ready     func() // called once, when packets are captured and the first file is there
}

// Result is what was captured.
type Result struct {
	Packets int64
	Dropped int64 // packets that the kernel did not keep, as its buffer was full
	Files   []string
	Removed int // files of the ring that were removed
	For     time.Duration
}
