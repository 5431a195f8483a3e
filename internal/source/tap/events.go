//go:build linux

package tap

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"strings"
)

// Types of reports and flags of calls, as in bpf/types.h.
const (
	evCall = 1 + iota
	evItem
	evOffCPU
	evOpen
	evClose
	evStatus
	evRetrans
	evInner
	evAcked
	evLookup
)

const (
	flagSampled = 1 << iota
	flagMerged
	flagFresh
	flagError
	flagTLS
	flagPaired
	flagQuiet
	flagPieces
)

const (
	roleServer = 1
	roleClient = 2
)

// States of a thread clock, as in bpf/types.h.
const (
	runnable = iota
	throttled
	frozen
	blocked
	asleep
	clocks
)

// addrPort is an end of a connection: the programs write IPv4 as mapped into IPv6.
func addrPort(ip [16]uint8, port uint16) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom16(ip).Unmap(), port)
}

// several is behind the first command of a turn under TLS that had more than one.
const several = " +"

// opName is a command with its subcommand, from words of eight bytes.
func opName(name [2]uint64, sub uint64) string {
	s := word(name[0])
	if s == "" {
		return "?" // under TLS, where no library tells
	}
	if opSaid(name) == "" {
		s += word(name[1])
	}
	if sub != 0 {
		s += " " + word(sub)
	}
	return s
}

// opSaid is what stands in the place of the rest of a name that is whole.
func opSaid(name [2]uint64) string {
	if name[0]>>56 != 0 {
		return ""
	}
	return word(name[1])
}

func word(w uint64) string {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], w)
	return strings.Map(printable, string(bytes.TrimRight(b[:], "\x00")))
}

// printable keeps what a peer sends as the name of a command from harming a terminal or a document.
func printable(r rune) rune {
	if r < 0x21 || r > 0x7e {
		return '?'
	}
	return r
}

func comm(b [16]uint8) string {
	s, _, _ := strings.Cut(string(b[:]), "\x00")
	return strings.ToValidUTF8(s, "?")
}
