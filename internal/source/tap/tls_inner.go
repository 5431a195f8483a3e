//go:build linux

package tap

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"io"
	"slices"
)

// A hook's first instruction is replaced; unless the kernel knows how to do its work itself, as it does that of a push,
// a copy of it is executed in a single step, whose exception leaves a virtual machine: most of what a hook costs there
// (docs/overhead.md). OpenSSL's SSL_read and SSL_read_ex begin with a sub, and both pass their arguments on to one
// function, ssl_read_internal, which begins with a push; it returns 1, and the length by its fourth argument, as
// SSL_read_ex does. It has no name in a stripped library.

// innerFunction finds the place in a file of the function to which several pass their arguments: the only one of the
// file's code that all of them call. It reports false where there is none, or where nothing is gained.
func innerFunction(f *elf.File, outer []string) (offset uint64, ok bool) {
	text, header := f.Section(".text"), f.Section(".eh_frame_hdr")
	if f.Machine != elf.EM_X86_64 || text == nil || header == nil || header.Size > maxNotes {
		return 0, false
	}
	table, err := header.Data()
	if err != nil {
		return 0, false
	}
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return 0, false
	}
	starts := functionStarts(table, header.Addr)
	var common []uint64
	found := 0
	for _, s := range symbols {
		if !slices.Contains(outer, s.Name) {
			continue
		}
		code := codeAt(text, s.Value, min(s.Size, 1024))
		if _, push := firstPush(code); push || len(code) == 0 {
			return 0, false
		}
		targets := slices.DeleteFunc(callTargets(code, s.Value), func(a uint64) bool {
			return !starts[a] || codeAt(text,
				a, 1) == nil
		})
		if found++; found > 1 {
			targets = slices.DeleteFunc(targets, func(a uint64) bool { return !slices.Contains(common, a) })
		}
		common = targets
	}
	if found != len(outer) || len(common) != 1 {
		return 0, false
	}
	at, push := firstPush(codeAt(text, common[0], 16))
	return fileOffset(f, common[0]+at), push
}

// codeAt gives so many bytes of code from an address on; nil where they are not in the section.
func codeAt(text *elf.Section, addr, n uint64) []byte {
	if addr < text.Addr || addr-text.Addr > text.Size || n > text.Size-(addr-text.Addr) {
		return nil
	}
	code := make([]byte, n)
	if _, err := text.ReadAt(code, int64(addr-text.Addr)); err != nil && err != io.EOF {
		return nil
	}
	return code
}

// firstPush finds the push of a register that a function begins with, behind an endbr64, which does nothing: there,
// too, the return address is the last on the stack.
func firstPush(code []byte) (at uint64, ok bool) {
	if rest, marked := bytes.CutPrefix(code, []byte{0xf3, 0x0f, 0x1e, 0xfa}); marked {
		code, at = rest, 4
	}
	if len(code) > 1 && code[0] == 0x41 { // of r8 to r15
		code = code[1:]
	}
	return at, len(code) > 0 && code[0] >= 0x50 && code[0] <= 0x57
}

// callTargets are the addresses that code at an address may call: all that follow a byte which may be that of a call.
func callTargets(code []byte, at uint64) []uint64 {
	const call, size = 0xe8, 5 // and 4 bytes of distance from the next instruction
	var out []uint64
	for i := 0; i+size <= len(code); i++ {
		if to := at + uint64(i) + size +
			uint64(int64(int32(binary.LittleEndian.Uint32(code[i+1:])))); code[i] == call && !slices.Contains(out, to) {
			out = append(out, to)
		}
	}
	return out
}

// functionStarts reads the search table of .eh_frame_hdr, which stands at an address: where functions begin, whether
// they have names or not (Linux Standard Base, "Exception Frame Header").
func functionStarts(header []byte, at uint64) map[uint64]bool {
	const fixed, entry = 12, 8
	// version, encodings as linkers choose them: distances of 4 bytes
	if len(header) < fixed || [4]byte(header) != [4]byte{1, 0x1b, 0x03, 0x3b} {
		return nil
	}
	n := binary.LittleEndian.Uint32(header[8:])
	out := map[uint64]bool{}
	for rest := header[fixed:]; n > 0 && len(rest) >= entry; n, rest = n-1, rest[entry:] {
		out[at+uint64(int64(int32(binary.LittleEndian.Uint32(rest))))] = true
	}
	return out
}
