package symbol

import (
	"debug/elf"
	"debug/gosym"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/ianlancetaylor/demangle"
)

// ErrNoELF says that a file is no program or library.
var ErrNoELF = errors.New("not an ELF file")

// maxSection bounds a table of symbols or frames: that of Chromium has 60 MiB.
const maxSection = 256 << 20

// File is a program or a library: the names of its functions, and the tables by which callers are found.
type File struct {
	Name    string // base name of its path
	BuildID string // in hexadecimal, empty where it has none
	// Stripped says that it has only the names of functions that it exports.
	Stripped bool
	loads    []elf.ProgHeader
	table    table
	// How callers are found: .eh_frame, and .debug_frame.
	exceptions, debugging rules
}

// openFile reads an ELF file. debug, if set, gives the file with the debug symbols of a build id, nil where there is
// none.
func openFile(r io.ReaderAt, name string, debug func(buildID string) (io.ReaderAt, func())) (f *File, err error) {
	defer func() { // debug/elf is not hardened against malicious files
		if p := recover(); p != nil {
			f, err = nil, fmt.Errorf("%w: %s: %v", ErrNoELF, name, p)
		}
	}()
	e, err := elf.NewFile(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrNoELF, name, err)
	}
	f = &File{Name: name, BuildID: buildID(e), loads: codeOf(e)}
	f.exceptions.section, f.exceptions.at = section(e, ".eh_frame")
	f.debugging.section, _ = section(e, ".debug_frame")
	all, full := functions(e)
	if !full && debug != nil && f.BuildID != "" {
		if d, done := debug(f.BuildID); d != nil {
			if de, err := elf.NewFile(d); err == nil {
				more, ok := functions(de)
				all, full = append(all, more...), ok
			}
			done()
		}
	}
	f.Stripped = !full
	f.table = tableOf(all)
	return f, nil
}

// codeOf are the parts of a file that are loaded as code.
func codeOf(e *elf.File) (loads []elf.ProgHeader) {
	for _, p := range e.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 {
			loads = append(loads, p.ProgHeader)
		}
	}
	return loads
}

// section reads a section; nil where there is none, or it cannot be read.
func section(e *elf.File, name string) ([]byte, uint64) {
	s := e.Section(name)
	if s == nil || s.Type == elf.SHT_NOBITS || s.Size > maxSection || s.FileSize > maxSection {
		return nil, 0
	}
	data, err := s.Data()
	if err != nil {
		return nil, 0
	}
	return data, s.Addr
}

// functions gives those of all tables of a file, and whether it has the names of functions that it does not export.
func functions(e *elf.File) (all []function, full bool) {
	for _, read := range []func() ([]elf.Symbol, error){e.Symbols, e.DynamicSymbols} {
		symbols, err := read()
		if err != nil {
			continue // it has none
		}
		for _, s := range symbols {
			t := elf.ST_TYPE(s.Info)
			if t != elf.STT_FUNC && t != elf.STT_GNU_IFUNC || s.Section == elf.SHN_UNDEF || s.Value == 0 {
				continue
			}
			rank := 0
			if elf.ST_BIND(s.Info) != elf.STB_GLOBAL {
				rank = 1
			}
			all = append(all, function{s.Value, s.Size, s.Name, rank})
		}
	}
	if s := e.Section(".symtab"); s != nil && s.Type != elf.SHT_NOBITS {
		return all, true
	}
	own := goFunctions(e)
	return append(all, own...), len(own) > 0
}

// goFunctions reads the table that each program of Go has, also without symbols. Its addresses count from where the
// code of Go begins, which is the section .text unless another linker has put code of C before it.
func goFunctions(e *elf.File) (all []function) {
	if libs, err := e.ImportedLibraries(); err == nil && len(libs) > 0 {
		return nil
	}
	text := e.Section(".text")
	for _, name := range []string{".gopclntab", ".data.rel.ro.gopclntab"} {
		s := e.Section(name)
		if s == nil || text == nil || s.Size > maxSection {
			continue
		}
		data, err := s.Data()
		if err != nil {
			continue
		}
		t, err := gosym.NewTable(nil, gosym.NewLineTable(data, text.Addr))
		if err != nil {
			continue
		}
		for _, f := range t.Funcs {
			all = append(all, function{start: f.Entry, size: f.End - f.Entry, name: f.Name})
		}
	}
	return all
}

// buildID reads the note of the linker: the length of the name (4, "GNU"), of the id, the type 3.
func buildID(e *elf.File) string {
	s := e.Section(".note.gnu.build-id")
	if s == nil || s.Size > 1024 {
		return ""
	}
	note, err := s.Data()
	if err != nil || len(note) <= 16 || e.ByteOrder.Uint32(note) != 4 {
		return ""
	}
	n := e.ByteOrder.Uint32(note[4:])
	if uint64(16)+uint64(n) > uint64(len(note)) {
		return ""
	}
	return hex.EncodeToString(note[16 : 16+n])
}

// address is where the linker meant a byte of the file to be.
func (f *File) address(offset uint64) (uint64, bool) {
	for _, p := range f.loads {
		if offset >= p.Off && offset-p.Off < p.Memsz {
			return p.Vaddr + (offset - p.Off), true
		}
	}
	return 0, false
}

// function is the name of what is at an address of the linker's.
func (f *File) function(addr uint64) (string, bool) {
	fn, ok := f.table.find(addr)
	if !ok {
		return "", false
	}
	return demangle.Filter(fn.name, demangle.NoParams, demangle.NoTemplateParams), true
}
