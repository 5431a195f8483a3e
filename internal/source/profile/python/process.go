package python

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"slowpath/internal/source/hostfs"
	"slowpath/internal/source/profile/symbol"
)

// Why stacks of a process cannot be read.
var (
	ErrNoPython  = errors.New("it has no CPython")
	ErrVersion   = errors.New("its version of CPython is not known: 3.11 to 3.15 are")
	ErrPrivilege = errors.New("its memory may not be read")
)

// Process is a process that runs CPython. It is not for use by several goroutines at once.
type Process struct {
	Version string // "3.11.2"

	mem      io.ReaderAt
	close    func() error
	layout   layout
	runtime  uint64 // _PyRuntime
	types    struct{ code, text, bytes uint64 }
	nativeID func(tid int) int // number of a thread in the process's own namespace

	states          map[uint64]threadState // by nativeID
	calls, searchAt int                    // of Stacks
	seen            gilState               // by the last walk of this call
	codes           map[codeKey]*code
	checked         map[frame]check
	codeBytes       int
	near            window
	walked, common  []frame
	state           [maxStruct + 8]byte // the thread state that walk has read
	small           [maxStruct + 8]byte
}

// Open finds CPython in a process: its program, or libpython. It takes what /proc/PID/mem takes: the same user, or
// CAP_SYS_PTRACE. That file stays open until Close, and is read without these rights then.
func Open(fs hostfs.FS, pid int) (*Process, error) {
	p, err := open(fs, pid)
	if errors.Is(err, os.ErrPermission) {
		err = fmt.Errorf("%w: %w", ErrPrivilege, err)
	}
	if err != nil {
		return nil, fmt.Errorf("looking for Python in process %d: %w", pid, err)
	}
	return p, nil
}

func open(fs hostfs.FS, pid int) (*Process, error) {
	mapped, err := symbol.OpenProcess(fs, pid, symbol.Files{})
	if err != nil {
		return nil, err
	}
	at := mapped.Variables("libpython", "_PyRuntime", "Py_Version", "PyCode_Type", "PyUnicode_Type", "PyBytes_Type")
	if at == nil {
		return nil, ErrNoPython
	}
	mem, err := fs.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return nil, err
	}
	p := newProcess(mem, [5]uint64(at))
	p.close = mem.Close
	if err := p.identify(at[1]); err != nil {
		mem.Close()
		return nil, err
	}
	if hostfs.NamespacePID(fs, pid) != pid {
		p.nativeID = nativeIDs(fs)
	}
	return p, nil
}

// nativeIDs gives the numbers that threads have in their own PID namespace.
func nativeIDs(fs hostfs.FS) func(tid int) int {
	known := map[int]int{}
	return func(tid int) int {
		id, ok := known[tid]
		if !ok && len(known) < maxStates {
			id = hostfs.NamespacePID(fs, tid)
			known[tid] = id
		}
		return id
	}
}

// newProcess is a process by its memory and the places of its variables, in the order in which open names them.
func newProcess(mem io.ReaderAt, at [5]uint64) *Process {
	p := &Process{
		mem: mem, runtime: at[0], nativeID: func(tid int) int { return tid },
		states: map[uint64]threadState{}, codes: map[codeKey]*code{}, checked: map[frame]check{},
	}
	p.types.code, p.types.text, p.types.bytes = at[2], at[3], at[4]
	return p
}

// identify finds the version, and how its structs are laid out.
func (p *Process) identify(at uint64) error {
	if at == 0 {
		return fmt.Errorf("%w; it is older", ErrVersion) // 3.11 is the first with Py_Version
	}
	version, err := p.word(at)
	if err != nil {
		return err
	}
	var runtime [publishedBytes]byte
	if err := p.read(p.runtime, runtime[:]); err != nil {
		return err
	}
	p.Version = fmt.Sprintf("%d.%d.%d", version>>24, version>>16&0xff, version>>8&0xff)
	p.layout, err = layoutOf(version, runtime[:])
	if err != nil {
		return fmt.Errorf("it has CPython %s: %w", p.Version, err)
	}
	return nil
}

// Close ends the access to the memory of the process.
func (p *Process) Close() error { return p.close() }

// errTorn is of memory that is not what it should be: the process runs on while it is read.
var errTorn = errors.New("it changed while it was read")

// read fills b from an address.
func (p *Process) read(at uint64, b []byte) error {
	if at == 0 || at > math.MaxInt64 {
		return errTorn
	}
	n, err := p.mem.ReadAt(b, int64(at))
	if n == len(b) {
		return nil
	}
	if err == nil || n > 0 {
		return errTorn
	}
	return err
}

// part reads n bytes, at most those of a struct, which the next call overwrites.
func (p *Process) part(at, n uint64) ([]byte, error) {
	b := p.small[:n]
	return b, p.read(at, b)
}

// word reads a number or a pointer.
func (p *Process) word(at uint64) (uint64, error) {
	b, err := p.part(at, 8)
	return binary.LittleEndian.Uint64(b), err
}

// pointer is a field of what part has read.
func pointer(b []byte, at uint64) uint64 { return binary.LittleEndian.Uint64(b[at:]) }

// window is a part of the memory that was read at once.
type window struct {
	at uint64
	b  []byte
	of [windowBytes]byte
}

// get is what the window has of an address; nil where it has not all of it.
func (w *window) get(at, n uint64) []byte {
	if at < w.at || n > uint64(len(w.b)) || at-w.at > uint64(len(w.b))-n {
		return nil
	}
	return w.b[at-w.at:][:n]
}
