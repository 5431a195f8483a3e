package sniffer

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"golang.org/x/net/bpf"
)

// maxServers is how many addresses a filter has at most: the kernel takes 4096 instructions, and an IPv6 address 22.
const maxServers = 128

// Offsets in the headers of IPv4, IPv6 and TCP, in bytes.
const (
	protocol4, fragment4 = 9, 6
	addresses4           = 12
	next6, addresses6    = 6, 8
	header6              = 40
	tcp                  = 6 // its number
)

// outgoing is a packet that this host sends (PACKET_OUTGOING of linux/if_packet.h).
const outgoing = 4

// filter is a program of classic BPF for packets that begin with their IP header. It keeps the first snap bytes of TCP
// segments from and to these addresses; 0.0.0.0 is any address of either family. What is sent over a loopback interface
// is seen twice, as outgoing and as incoming: the outgoing ones are left out.
func filter(servers []netip.AddrPort, loopback, snap int) ([]bpf.RawInstruction, error) {
	if len(servers) > maxServers {
		return nil, fmt.Errorf("%d addresses: give at most %d, or none and the ports (-p)", len(servers), maxServers)
	}
	program := incomingOnly(loopback)
	program = append(program, matching(servers, uint32(snap))...)
	return bpf.Assemble(program)
}

// incomingOnly leaves out what is sent over an interface.
func incomingOnly(index int) []bpf.Instruction {
	if index == 0 {
		return nil
	}
	return []bpf.Instruction{
		bpf.LoadExtension{Num: bpf.ExtInterfaceIndex},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(index), SkipTrue: 3},
		bpf.LoadExtension{Num: bpf.ExtType},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: outgoing, SkipTrue: 1},
		bpf.RetConstant{},
	}
}

// matching is the part of the program that reads the packet.
func matching(servers []netip.AddrPort, snap uint32) []bpf.Instruction {
	v4 := []bpf.Instruction{
		bpf.LoadAbsolute{Off: protocol4, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: tcp, SkipTrue: 1},
		bpf.RetConstant{},
		bpf.LoadAbsolute{Off: fragment4, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: 0x1fff, SkipFalse: 1}, // not the first fragment: no ports
		bpf.RetConstant{},
		bpf.LoadMemShift{Off: 0}, // X: length of the IP header
	}
	v6 := []bpf.Instruction{
		bpf.LoadAbsolute{Off: next6, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: tcp, SkipTrue: 1},
		bpf.RetConstant{},
		bpf.LoadConstant{Dst: bpf.RegX, Val: header6},
	}
	for _, s := range servers {
		any := s.Addr().IsUnspecified()
		if s.Addr().Is4() || any {
			v4 = append(v4, from(s, addresses4, snap)...)
		}
		if !s.Addr().Is4() || any {
			v6 = append(v6, from(s, addresses6, snap)...)
		}
	}
	v4, v6 = append(v4, bpf.RetConstant{}), append(v6, bpf.RetConstant{})
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: 0, Size: 1},
		bpf.ALUOpConstant{Op: bpf.ALUOpShiftRight, Val: 4}, // the version
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 6, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 4, SkipTrue: 2},
		bpf.RetConstant{},
		bpf.Jump{Skip: uint32(len(v4))},
	}
	return append(append(program, v4...), v6...)
}

// from keeps packets from and to an address. X is the length of the IP header, whose addresses begin at an offset.
func from(s netip.AddrPort, addresses uint32, snap uint32) (program []bpf.Instruction) {
	var words []uint32
	if !s.Addr().IsUnspecified() {
		b := s.Addr().AsSlice()
		for i := 0; i < len(b); i += 4 {
			words = append(words, binary.BigEndian.Uint32(b[i:]))
		}
	}
	for end := range uint32(2) { // source, destination
		for i, word := range words {
			rest := 2*(len(words)-1-i) + 3 // instructions until the next end's
			program = append(program,
				bpf.LoadAbsolute{Off: addresses + end*uint32(4*len(words)) + uint32(4*i), Size: 4},
				bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: word, SkipTrue: uint8(rest)})
		}
		program = append(program,
			bpf.LoadIndirect{Off: 2 * end, Size: 2},
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(s.Port()), SkipTrue: 1},
			bpf.RetConstant{Val: snap})
	}
	return program
}
