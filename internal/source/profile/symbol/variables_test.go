package symbol

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"slowpath/internal/source/hostfs"
)

// library is an ELF file whose code, at 0x1000 in the file, is linked for 0x5000, and that exports variables.
func library(machine elf.Class, variables map[string]uint64) []byte {
	symbols, names := []elf.Sym64{{}}, []byte{0}
	for name, at := range variables {
		symbols = append(symbols, elf.Sym64{
			Name: uint32(len(names)), Info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_OBJECT), Shndx: 1, Value: at,
		})
		names = append(append(names, name...), 0)
	}
	bss := uint32(len(names))
	names = append(names, ".bss\x00"...)
	const header, program, section, symbol = 64, 56, 64, elf.Sym64Size
	tables := uint64(header + program + 4*section)
	size := uint64(len(symbols) * symbol)
	head := elf.Header64{
		Type: uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Version: 1, Ehsize: header,
		Phoff: header, Phentsize: program, Phnum: 1, Shoff: header + program, Shentsize: section, Shnum: 4, Shstrndx: 2,
	}
	copy(head.Ident[:], []byte{0x7f, 'E', 'L', 'F', byte(machine), byte(elf.ELFDATA2LSB), 1})
	var file bytes.Buffer
	for _, part := range []any{
		head,
		elf.Prog64{
			Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_X),
			Off: 0x1000, Vaddr: 0x5000, Filesz: 0x1000, Memsz: 0x1000,
		},
		[]elf.Section64{
			{},
			{Type: uint32(elf.SHT_DYNSYM), Off: tables, Size: size, Link: 2, Entsize: symbol},
			{Type: uint32(elf.SHT_STRTAB), Off: tables + size, Size: uint64(len(names))},
			{Name: bss, Type: uint32(elf.SHT_NOBITS), Addr: 0x8000, Size: 0x300},
		},
		symbols, names,
	} {
		_ = binary.Write(&file, binary.LittleEndian, part) // to memory
	}
	return file.Bytes()
}

// TestVariables: the first library with the name that has the first variable, mapped anywhere; files that are none.
func TestVariables(t *testing.T) {
	root := hostfs.Root{Dir: t.TempDir()}
	for name, text := range map[string][]byte{
		"proc/77/maps": []byte("00100000-00110000 r-xp 00000000 08:01 4 /bin/shop\n" +
			"00200000-00210000 r-xp 00000000 08:01 5 /lib/libcut.so\n" +
			"00300000-00310000 r-xp 00000000 08:01 6 /lib/lib32.so\n" +
			"00400000-00401000 r-xp 00001000 08:01 7 /lib/libshop.so\n" +
			"00500000-00501000 r-xp 00001000 08:01 8 /lib/other.so\n"),
		"proc/77/root/lib/libcut.so":  []byte("\x7fELF\x02\x01\x01"),
		"proc/77/root/lib/lib32.so":   library(elf.ELFCLASS32, nil),
		"proc/77/root/lib/libshop.so": library(elf.ELFCLASS64, map[string]uint64{"till": 0x7010, "shelf": 0x4000}),
		"proc/77/root/lib/other.so":   library(elf.ELFCLASS64, map[string]uint64{"van": 0x5000}),
	} {
		name = filepath.Join(root.Dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p, err := OpenProcess(root, 77, Files{})
	if err != nil {
		t.Fatal(err)
	}
	if at := p.Variables("lib", "till", "shelf", "van"); !slices.Equal(at, []uint64{0x402010, 0x3ff000, 0}) {
		t.Errorf("%x", at)
	}
	if at := p.Variables("lib", "till", ".bss", ".bss end"); !slices.Equal(at, []uint64{0x402010, 0x403000, 0x403300}) {
		t.Errorf("without names: %x", at)
	}
	if at := p.Variables("lib", "van", "till"); at != nil {
		t.Errorf("of a library with another name: %x", at)
	}
}
