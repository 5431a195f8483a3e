package python

import (
	"fmt"
	"io"

	"slowpath/internal/source/profile/interpreter"
)

// Language finds CPython in processes.
var Language = interpreter.Language{
	Name: "Python", Library: "libpython",
	Variables: []string{"_PyRuntime", "Py_Version", "PyCode_Type", "PyUnicode_Type", "PyBytes_Type"},
	Identify: func(mem io.ReaderAt, at []uint64) (interpreter.Runtime, string, error) {
		p := newProcess(mem, [5]uint64(at))
		version, err := p.identify(at[1])
		return p, version, err
	},
}

// errVersion is of versions whose structs are not known.
var errVersion = fmt.Errorf("%w: CPython 3.11 to 3.15 are", interpreter.ErrVersion)

// process is the memory of a process that runs CPython.
type process struct {
	interpreter.Memory
	layout  layout
	runtime uint64 // _PyRuntime
	types   struct{ code, text, bytes uint64 }
	near    window
	state   [maxStruct + 8]byte // the thread state that Walk has read
}

// newProcess is a process by its memory and the places of its variables, in the order of Language.
func newProcess(mem io.ReaderAt, at [5]uint64) *process {
	p := &process{runtime: at[0]}
	p.From = mem
	p.types.code, p.types.text, p.types.bytes = at[2], at[3], at[4]
	return p
}

// identify finds the version, and how its structs are laid out.
func (p *process) identify(at uint64) (text string, err error) {
	if at == 0 {
		return "", fmt.Errorf("%w; it is older", errVersion) // 3.11 is the first with Py_Version
	}
	version, err := p.Word(at)
	if err != nil {
		return "", err
	}
	var runtime [publishedBytes]byte
	if err := p.Read(p.runtime, runtime[:]); err != nil {
		return "", err
	}
	text = fmt.Sprintf("%d.%d.%d", version>>24, version>>16&0xff, version>>8&0xff)
	p.layout, err = layoutOf(version, runtime[:])
	if err != nil {
		return "", fmt.Errorf("it has CPython %s: %w", text, err)
	}
	return text, nil
}

// Alive is an error where the memory of the process is gone.
func (p *process) Alive() error {
	_, err := p.Word(p.runtime)
	return err
}

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
