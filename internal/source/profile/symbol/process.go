// Package symbol names the functions that addresses of a process or of the kernel are in, and says how to find the
// caller of each.
//
// Names come from the ELF files that the process has mapped (their symbols, those of separate debug files by build id,
// the table that programs of Go have), from the map of a just-in-time compiler (perf-PID.map), and from /proc/kallsyms.
// The ways to the callers come from .eh_frame.
package symbol

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"

	"slowpath/internal/source/hostfs"
)

// Files are the programs and libraries that were read, by device and inode: processes share them.
type Files map[string]*File

// Process is a process of this host.
type Process struct {
	fs    hostfs.FS
	pid   int
	files Files
	maps  []Mapping
	exe   string // path of the program
	// name is its comm, which is not its file's name where it was started through a link (redis-server is a link to
	// redis-check-rdb)
	name  string
	jit   table
	jitAt int64 // length of the map when it was read
	names map[uint64]string
	// leftOut says why the last mappings are not known; nil where all are
	leftOut error
}

// maxNames bounds what is remembered of one process.
const maxNames = 200_000

// OpenProcess reads what a process has mapped. Its error matches os.ErrNotExist where there is no such process,
// os.ErrPermission where it is another's.
func OpenProcess(fs hostfs.FS, pid int, files Files) (*Process, error) {
	p := &Process{fs: fs, pid: pid, files: files}
	return p, p.Refresh()
}

// Refresh reads the mappings of the process again, and the map of its just-in-time compiler: call it when addresses are
// unknown.
func (p *Process) Refresh() error {
	maps, err := readMaps(p.fs, p.proc("maps"))
	if err != nil && !errors.Is(err, errTooLarge) {
		return fmt.Errorf("reading the mappings of process %d: %w", p.pid, err)
	}
	p.leftOut = err
	p.maps, p.names = maps, map[uint64]string{}
	if exe, err := p.fs.Readlink(p.proc("exe")); err == nil {
		p.exe = strings.TrimSuffix(exe, " (deleted)")
	}
	if comm, err := p.fs.ReadFile(p.proc("comm")); err == nil {
		p.name = strings.TrimSpace(string(comm))
	}
	p.readJIT()
	return nil
}

// LeftOut says why some mappings of the process are not known, so that functions there have no names; nil where all
// are.
func (p *Process) LeftOut() error { return p.leftOut }

func (p *Process) proc(name string) string { return "/proc/" + strconv.Itoa(p.pid) + "/" + name }

// readJIT reads the map of a just-in-time compiler from /tmp as the process sees it.
func (p *Process) readJIT() {
	// A process may put anything there: a pipe would block the open, a link lead to a file of this program's user.
	f, err := p.fs.OpenRegular(p.proc(fmt.Sprintf("root/tmp/perf-%d.map", hostfs.NamespacePID(p.fs, p.pid))), false)
	if err != nil {
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() == p.jitAt {
		return
	}
	if t, err := parseJIT(f); err == nil {
		p.jit, p.jitAt = t, info.Size()
	}
}

// mapping is the mapping that an address is in.
func (p *Process) mapping(addr uint64) *Mapping {
	i := sort.Search(len(p.maps), func(i int) bool { return p.maps[i].End > addr })
	if i == len(p.maps) || addr < p.maps[i].Start {
		return nil
	}
	return &p.maps[i]
}

// Mapped reports whether an address is in a mapping with code.
func (p *Process) Mapped(addr uint64) bool { return p.mapping(addr) != nil }

// file is what an address is of, and the linker's address there; nil for memory without a file.
func (p *Process) file(addr uint64) (*File, uint64) {
	m := p.mapping(addr)
	if m == nil || m.Path == "" {
		return nil, 0
	}
	f := p.open(m)
	if f == nil {
		return nil, 0
	}
	at, ok := f.address(addr - m.Start + m.Offset)
	if !ok {
		return nil, 0
	}
	return f, at
}

// open reads the file of a mapping once. Failures are remembered, too.
func (p *Process) open(m *Mapping) *File {
	key := m.File
	if key == "" {
		key = m.Path
	}
	if f, known := p.files[key]; known {
		return f
	}
	f := p.read(m)
	p.files[key] = f
	return f
}

func (p *Process) read(m *Mapping) (f *File) {
	var err error
	if m.Path == "[vdso]" {
		if image, ok := vdso(p.fs); ok {
			f, _ = openFile(image, m.Path, nil) // nil where it does not read
			return f
		}
		return nil
	}
	if !strings.HasPrefix(m.Path, "/") {
		return nil
	}
	p.eachFile(m, func(r *os.File) (done bool) {
		f, err = openFile(r, path.Base(m.Path), p.debug)
		return err == nil
	})
	return f
}

// eachFile opens the mapped file itself, even where it was replaced since (needs root), and else the file that has its
// name now, until use is done with one.
func (p *Process) eachFile(m *Mapping, use func(*os.File) (done bool)) {
	for _, name := range []string{fmt.Sprintf("map_files/%x-%x", m.Start, m.End), "root" + m.Path} {
		r, err := p.fs.OpenRegular(p.proc(name), true)
		if err != nil {
			continue
		}
		done := use(r)
		r.Close()
		if done {
			return
		}
	}
}

// debug opens the file with the symbols of a stripped program, which debug packages of distributions install.
func (p *Process) debug(buildID string) (io.ReaderAt, func()) {
	name := filepath.Join("usr/lib/debug/.build-id", buildID[:min(2, len(buildID))],
		buildID[min(2, len(buildID)):]+".debug")
	for _, root := range []string{p.proc("root"), "/"} {
		if f, err := p.fs.OpenRegular(filepath.Join(root, name), true); err == nil {
			return f, func() { f.Close() }
		}
	}
	return nil, nil
}

// Function is the name of the function that an address is in: of the file, or of a just-in-time compiler. Where there
// is no name it is that of the file in brackets, "[jit]" for memory without one, and "?" for what is not mapped.
func (p *Process) Function(addr uint64) string {
	if name, known := p.names[addr]; known {
		return name
	}
	name := p.function(addr)
	if len(p.names) < maxNames {
		p.names[addr] = name
	}
	return name
}

func (p *Process) function(addr uint64) string {
	m := p.mapping(addr)
	if m == nil {
		return "?"
	}
	if f, at := p.file(addr); f != nil {
		if name, ok := f.function(at); ok {
			return name
		}
	}
	if f, ok := p.jit.find(addr); ok {
		return f.name
	}
	switch m.Path {
	case "":
		return "[jit]"
	case p.exe:
		return p.Unnamed()
	}
	return "[" + strings.Trim(path.Base(m.Path), "[]") + "]"
}

// Rule says how to find the caller of what is at an address; nil where its file does not have it, or there is none. The
// innermost function of a stack is the one that runs.
func (p *Process) Rule(addr uint64, innermost bool) *Rule {
	f, at := p.file(addr)
	if f == nil {
		return nil
	}
	return f.rule(at, innermost)
}

// Program is the file of the program itself, the first that is mapped; nil where it cannot be read.
func (p *Process) Program() *File {
	for i := range p.maps {
		if p.maps[i].Path == p.exe && p.exe != "" {
			return p.open(&p.maps[i])
		}
	}
	return nil
}

// Unnamed is what Function gives for functions of the program itself that have no name.
func (p *Process) Unnamed() string { return "[" + p.name + "]" }

// Runs reports whether a library is mapped, by the name of its file.
func (p *Process) Runs(library string) bool {
	return slices.ContainsFunc(p.maps, func(m Mapping) bool { return path.Base(m.Path) == library })
}

// HasJITMap reports whether the process has a map of its just-in-time compiler.
func (p *Process) HasJITMap() bool { return len(p.jit) > 0 }
