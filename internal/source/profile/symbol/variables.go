package symbol

import (
	"debug/elf"
	"os"
	"path"
	"strings"
)

// Variables gives where in the memory of the process the variables with these names are, 0 for those that are not
// there: of the program itself, or of the first mapped file with `library` in its name, that has the first of them.
// It is nil where there is none. ".bss" and ".bss end" are where variables without a name begin, and end. Only files
// for 64 bits, little-endian, are read.
func (p *Process) Variables(library string, names ...string) (at []uint64) {
	seen := map[string]bool{}
	for i := range p.maps {
		m := &p.maps[i]
		if seen[m.Path] || !strings.HasPrefix(m.Path, "/") ||
			m.Path != p.exe && !strings.Contains(path.Base(m.Path), library) {
			continue
		}
		seen[m.Path] = true
		p.eachFile(m, func(r *os.File) bool {
			at = variables(r, m, names)
			return at != nil
		})
		if at != nil {
			return at
		}
	}
	return nil
}

// variables gives their places by the tables of one file; nil without the first.
func variables(r *os.File, m *Mapping, names []string) (at []uint64) {
	defer func() { // debug/elf is not hardened against malicious files
		if recover() != nil {
			at = nil
		}
	}()
	e, err := elf.NewFile(r)
	if err != nil || e.Class != elf.ELFCLASS64 || e.Data != elf.ELFDATA2LSB {
		return nil
	}
	f := File{loads: codeOf(e)}
	linked, ok := f.address(m.Offset)
	if !ok {
		return nil
	}
	at = make([]uint64, len(names))
	if s := e.Section(".bss"); s != nil {
		for i, name := range names {
			switch name {
			case ".bss":
				at[i] = m.Start + (s.Addr - linked)
			case ".bss end":
				at[i] = m.Start + (s.Addr - linked) + s.Size
			}
		}
	}
	for _, read := range []func() ([]elf.Symbol, error){e.DynamicSymbols, e.Symbols} {
		symbols, err := read()
		if err != nil {
			continue // it has none
		}
		for _, s := range symbols {
			for i, name := range names {
				if s.Name == name && s.Section != elf.SHN_UNDEF && elf.ST_TYPE(s.Info) == elf.STT_OBJECT {
					at[i] = m.Start + (s.Value - linked)
				}
			}
		}
		if at[0] != 0 {
			return at
		}
	}
	return nil
}
