package symbol

import (
	"bytes"
	"debug/elf"
	"os"
	"testing"
)

// FuzzFrames: .eh_frame of a file of others, with rules for addresses within and beyond it.
func FuzzFrames(f *testing.F) {
	if name, err := os.Executable(); err == nil {
		if section := frameSection(name); len(section) > 0 {
			f.Add(section[:min(len(section), 4096)], uint64(0x1000), uint64(0x1010))
		}
	}
	f.Add([]byte{0x14, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 0x10, 1, 0x1b, 0xc, 7, 8, 0x90, 1, 0, 0},
		uint64(0x1000), uint64(0))
	f.Add(bytes.Repeat([]byte{0xff}, 32), uint64(0), uint64(1))
	f.Fuzz(func(t *testing.T, section []byte, addr, pc uint64) {
		entries := parseFrames(section, addr)
		if len(entries) > len(section) {
			t.Errorf("%d entries of %d bytes", len(entries), len(section))
		}
		r := rules{entries: entries, known: map[uint64]*Rule{}}
		r.make(pc)
	})
}

// frameSection is .eh_frame or .debug_frame of a program.
func frameSection(name string) []byte {
	file, err := elf.Open(name)
	if err != nil {
		return nil
	}
	defer file.Close()
	for _, section := range []string{".eh_frame", ".debug_frame"} {
		if s := file.Section(section); s != nil {
			if b, err := s.Data(); err == nil {
				return b
			}
		}
	}
	return nil
}
