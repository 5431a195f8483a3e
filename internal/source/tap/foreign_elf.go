//go:build linux

package tap

import (
	"debug/elf"
	"fmt"

	"slowpath/internal/source/hostfs"
)

// Bounds of programs and libraries of other processes, which can be made to say anything.
const (
	maxELF     = 1 << 30  // bytes of a file
	maxSymbols = 64 << 20 // bytes of a table of symbols, or of their names
)

// withELF reads an ELF file of another process. do is handed a name of the file that stays its name, whatever the
// process puts in its place meanwhile. A file that makes a parser panic is an error.
func withELF(path string, do func(f *elf.File, name string) error) (err error) {
	file, err := hostfs.Root{}.OpenRegular(path, true)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.Size() > maxELF {
		return fmt.Errorf("%s has %d bytes: too many for a program", path, info.Size())
	}
	defer func() { // debug/elf is not hardened against malicious files
		if p := recover(); p != nil {
			err = fmt.Errorf("reading %s: %v", path, p)
		}
	}()
	f, err := elf.NewFile(file)
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	for _, s := range f.Sections {
		if s.Size > maxSymbols && (s.Type == elf.SHT_SYMTAB || s.Type == elf.SHT_DYNSYM || s.Type == elf.SHT_STRTAB) {
			return fmt.Errorf("%s has %d bytes of symbols in %s: too many", path, s.Size, s.Name)
		}
	}
	return do(f, fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
}
