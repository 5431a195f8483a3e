//go:build linux

package tap

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"strings"
	"unsafe"

	"slowpath/internal/recording"
)

// Names of this package for what bpf/types.h defines; the numbers come from there (see gen.go).
const (
	evCall       = kernelEventTypeEV_CALL
	evActivity   = kernelEventTypeEV_ACTIVITY
	evOffCPU     = kernelEventTypeEV_OFFCPU
	evOpen       = kernelEventTypeEV_OPEN
	evClose      = kernelEventTypeEV_CLOSE
	evStatus     = kernelEventTypeEV_STATUS
	evRetrans    = kernelEventTypeEV_RETRANS
	evFunction   = kernelEventTypeEV_FUNCTION
	evAcked      = kernelEventTypeEV_ACKED
	evDNS        = kernelEventTypeEV_DNS
	evCollection = kernelEventTypeEV_COLLECTION
	evProgram    = kernelEventTypeEV_PROGRAM

	evOperation  = kernelEventTypeEV_OPERATION
	evNotDialled = kernelEventTypeEV_NOT_DIALLED
	evStalled    = kernelEventTypeEV_STALLED

	flagSampled = kernelCallFlagF_SAMPLED
	flagMerged  = kernelCallFlagF_MERGED
	flagFresh   = kernelCallFlagF_FRESH
	flagError   = kernelCallFlagF_ERROR
	flagTLS     = kernelCallFlagF_TLS
	flagPaired  = kernelCallFlagF_PAIRED
	flagQuiet   = kernelCallFlagF_QUIET
	flagPieces  = kernelCallFlagF_PIECES

	notObserver   = uint8(kernelObserverNO_OBSERVER)
	ownObserver   = uint8(kernelObserverOWN)
	otherObserver = uint8(kernelObserverOTHER)
	flagBlocking  = kernelCallFlagF_BLOCKING
	flagOpening   = kernelCallFlagF_OPENING
	flagAdmin     = kernelCallFlagF_ADMIN

	roleServer = kernelRoleSERVER
	roleClient = kernelRoleCLIENT

	runnable  = kernelThreadStateRUNNABLE
	throttled = kernelThreadStateTHROTTLED
	frozen    = kernelThreadStateFROZEN
	blocked   = kernelThreadStateBLOCKED
	asleep    = kernelThreadStateASLEEP
	clocks    = kernelThreadStateCLOCKS
)

// take passes one event on.
func (t *Tap) take(raw []byte) {
	if len(raw) == 0 {
		return
	}
	switch kernelEventType(raw[0]) {
	case evCall:
		dispatch(raw, t.recorder.call)
	case evActivity:
		dispatch(raw, t.recorder.activity)
	case evOffCPU:
		dispatch(raw, t.recorder.offCPU)
	case evOpen, evClose, evStatus:
		dispatch(raw, t.recorder.conn)
	case evRetrans:
		dispatch(raw, t.recorder.retransmit)
	case evAcked:
		dispatch(raw, t.recorder.acknowledged)
	case evDNS:
		dispatch(raw, t.recorder.dns)
	case evFunction:
		dispatch(raw, t.recorder.function)
	case evCollection:
		dispatch(raw, t.collection)
	case evProgram:
		dispatch(raw, t.recorder.program)
	case evOperation:
		dispatch(raw, t.recorder.operation)
	case evNotDialled:
		dispatch(raw, t.recorder.notDialled)
	case evStalled:
		dispatch(raw, t.recorder.stalled)
	}
}

// dispatch copies an event into its type, whose layout is the kernel's.
func dispatch[T any](raw []byte, f func(*T)) {
	var e T
	if n := int(unsafe.Sizeof(e)); len(raw) >= n {
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&e)), n), raw)
		f(&e)
	}
}

// addrPort is an end of a connection: the programs write IPv4 as mapped into IPv6.
func addrPort(ip [16]uint8, port uint16) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom16(ip).Unmap(), port)
}

// nameBytes of a command's name are seen.
const nameBytes = 16

// opName is a command with its subcommand, from words of eight bytes.
func opName(name [2]uint64, sub uint64) string {
	s := word(name[0])
	if s == "" {
		return "?" // under TLS, where no library gives it
	}
	if libraryName(name) == "" {
		s += word(name[1])
	}
	if s = recording.CommandNameCut(s, nameBytes); s == recording.UnknownCommand {
		return s
	}
	if w := word(sub); w == "+" || recording.SubcommandName(w) != "" {
		s += " " + w
	}
	return s
}

// libraryName is the second word of a name whose first word is complete: what a client library says of itself by CLIENT
// SETINFO (see op_of of bpf/calls.h).
func libraryName(name [2]uint64) string {
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
