package ruby

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"slowpath/internal/source/profile/interpreter"
)

// Language finds CRuby in processes.
var Language = interpreter.Language{
	Name: "Ruby", Library: "libruby", Arch: "amd64",
	Variables: []string{"ruby_version", "ruby_current_vm_ptr", ".bss", ".bss end"},
	Identify: func(mem io.ReaderAt, at []uint64) (interpreter.Runtime, string, error) {
		p := newProcess(mem)
		version, err := p.identify([4]uint64(at))
		return p, version, err
	},
}

const (
	maxVersion = 16      // bytes of ruby_version
	maxBSS     = 4 << 20 // bytes of variables without a name
)

// process is the memory of a process that runs CRuby.
type process struct {
	interpreter.Memory
	layout layout
	vm     uint64
	// of the thread that Walk has read
	tid    uint64
	thread [threadBytes]byte
	frames [interpreter.MaxDepth * maxFrame]byte
}

func newProcess(mem io.ReaderAt) *process {
	p := &process{}
	p.From = mem
	return p
}

// identify finds the version and the virtual machine, by the places of the variables in the order of Language.
func (p *process) identify(at [4]uint64) (version string, err error) {
	b, err := p.Part(at[0], maxVersion)
	if err != nil {
		return "", err
	}
	text, _, _ := bytes.Cut(b, []byte{0})
	for _, c := range text {
		if c != '.' && (c < '0' || c > '9') {
			return "", fmt.Errorf("%w; ruby_version is none", errVersion)
		}
	}
	version = string(text)
	if p.layout, err = layoutOf(version); err != nil {
		return "", fmt.Errorf("it has CRuby %s: %w", version, err)
	}
	for range interpreter.Walks { // threads come and go meanwhile
		if p.vm, err = p.findVM(at[1], at[2], at[3]); p.vm != 0 || err != nil {
			return version, err
		}
	}
	return "", fmt.Errorf("it has CRuby %s: %w; its structs are not laid out like those", version, errVersion)
}

// findVM is the virtual machine that a variable points to, or else one of those without a name; 0 where there is none.
func (p *process) findVM(variable, from, to uint64) (vm uint64, err error) {
	if variable != 0 {
		if vm, err = p.Word(variable); err != nil || !p.isVM(vm) {
			return 0, err
		}
		return vm, nil
	}
	if to <= from || to-from > maxBSS {
		return 0, nil
	}
	all := make([]byte, to-from)
	if err := p.Read(from, all); err != nil {
		return 0, err
	}
	var candidates []uint64
	for ; len(all) >= 8; all = all[8:] {
		if at := interpreter.Pointer(all, 0); isPointer(at) {
			candidates = append(candidates, at)
		}
	}
	slices.Sort(candidates)
	var page [pageBytes]byte
	var pageAt uint64
	for _, at := range slices.Compact(candidates) { // there are thousands, in few pages
		if in := at &^ (pageBytes - 1); in != pageAt {
			if p.Read(in, page[:]) != nil {
				clear(page[:])
			}
			pageAt = in
		}
		if rest := page[at-pageAt:]; len(rest) >= vmBytes && !mayBeVM(rest) {
			continue
		}
		if p.isVM(at) {
			return at, nil
		}
	}
	return 0, nil
}

const pageBytes = 4096

// isPointer reports whether a number may be one to what was allocated.
func isPointer(at uint64) bool { return at&7 == 0 && at>>16 != 0 && at>>47 == 0 }

// mayBeVM reports whether a virtual machine may be in a part of the memory, by that alone.
func mayBeVM(b []byte) bool {
	count := binary.LittleEndian.Uint32(b[vmRactors+listCount:])
	return count > 0 && count <= interpreter.MaxThreads && isPointer(interpreter.Pointer(b, vmMain)) &&
		isPointer(interpreter.Pointer(b, vmMainThread))
}

// isVM reports whether a virtual machine is at an address: what it refers to refers to it.
func (p *process) isVM(vm uint64) bool {
	b, err := p.Part(vm, vmBytes)
	if err != nil {
		return false
	}
	l := &p.layout
	main, thread := interpreter.Pointer(b, vmMain), interpreter.Pointer(b, vmMainThread)
	same := func(at, want uint64) bool {
		is, err := p.Word(at)
		return err == nil && is == want
	}
	if !same(main+l.main, thread) || !same(thread+threadRactor, main) || !same(thread+threadVM, vm) {
		return false
	}
	context, err := p.Word(thread + l.context)
	if err != nil || !same(context+contextThread, thread) {
		return false
	}
	ractors, ok := p.list(vm + vmRactors)
	if !ok || !slices.Contains(ractors, main+l.listed) {
		return false
	}
	threads, ok := p.list(main + l.threads)
	return ok && slices.Contains(threads, thread)
}

// Alive is an error where the memory of the process is gone.
func (p *process) Alive() error {
	_, err := p.Word(p.vm)
	return err
}
