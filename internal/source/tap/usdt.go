//go:build linux

package tap

import (
	"debug/elf"
	"encoding/binary"
	"strings"
)

// probe is a USDT probe in a file: the offsets of its instruction, and of the counter that enables it (0: none).
type probe struct{ at, semaphore uint64 }

// Bounds of what is read of a foreign file.
const (
	maxNotes     = 1 << 20 // bytes
	stapNoteType = 3       // NT_STAPSDT
)

// probesOf reads the probes of an ELF file (https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation), by
// "provider:name".
func probesOf(f *elf.File) map[string]probe {
	notes := f.Section(".note.stapsdt")
	if notes == nil || notes.Size > maxNotes || f.Class != elf.ELFCLASS64 {
		return nil
	}
	data, err := notes.Data()
	if err != nil {
		return nil
	}
	base := uint64(0)
	if s := f.Section(".stapsdt.base"); s != nil {
		base = s.Addr
	}
	out := map[string]probe{}
	eachProbe(data, f.ByteOrder, func(name string, at, linkedBase, semaphore uint64) {
		moved := base - linkedBase // by prelink
		if base == 0 {
			moved = 0
		}
		p := probe{at: fileOffset(f, at+moved)}
		if semaphore != 0 {
			p.semaphore = fileOffset(f, semaphore+moved)
		}
		if _, known := out[name]; !known && p.at != 0 {
			out[name] = p
		}
	})
	return out
}

// eachProbe parses notes: lengths of name and body, type, "stapsdt", three addresses, provider, name and arguments.
func eachProbe(data []byte, order binary.ByteOrder, do func(name string, at, base, semaphore uint64)) {
	pad := func(n uint32) uint64 { return (uint64(n) + 3) &^ 3 }
	for len(data) >= 12 {
		nameLen, bodyLen, kind := order.Uint32(data), order.Uint32(data[4:]), order.Uint32(data[8:])
		size := 12 + pad(nameLen) + pad(bodyLen)
		if size > uint64(len(data)) {
			return
		}
		body := data[12+pad(nameLen):][:bodyLen]
		data = data[size:]
		if kind != stapNoteType || len(body) < 24 {
			continue
		}
		words := strings.SplitN(string(body[24:]), "\x00", 3)
		if len(words) == 3 {
			do(words[0]+":"+words[1], order.Uint64(body), order.Uint64(body[8:]), order.Uint64(body[16:]))
		}
	}
}

// fileOffset is where an address of a loaded file is in it; 0 where it is not.
func fileOffset(f *elf.File, addr uint64) uint64 {
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && addr >= p.Vaddr && addr-p.Vaddr < p.Filesz {
			return addr - p.Vaddr + p.Off
		}
	}
	return 0
}
