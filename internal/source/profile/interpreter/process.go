// Package interpreter reads the stacks of threads of an interpreter from the memory of its process, while it runs:
// which function, in which file, at which line, and which thread holds the interpreter's lock. It does not stop the
// process, attach to it or write anything; it reads /proc/PID/mem. Where things are in that memory the packages of
// languages know: python, ruby.
//
// The process runs while it is read, and may be hostile. Lists, texts, tables and depths are bounded; a stack that
// changes so fast that it cannot be read is left out and counted. A process can make a read of its memory wait
// (userfaultfd, a file on FUSE), as it can for its /proc/PID/cmdline.
package interpreter

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"slowpath/internal/source/hostfs"
	"slowpath/internal/source/profile/symbol"
)

// Why stacks of a process cannot be read.
var (
	ErrNone      = errors.New("it does not run this language")
	ErrVersion   = errors.New("its version is not known")
	ErrPrivilege = errors.New("its memory may not be read")
)

// What is read of one process at most.
const (
	MaxFrames  = 64   // of a stack that is reported: the innermost
	MaxDepth   = 512  // of a stack that is followed to its end, with functions of C
	MaxThreads = 4096 // with interpreters
	Walks      = 8    // of a stack that changes
)

// Thread is where an interpreter keeps what it knows of a thread.
type Thread struct {
	ID uint64 // of the thread in the namespace of the process
	At uint64
	In uint64 // the interpreter, or what else has a lock of its own
}

// Main is the ID of the thread that is the kernel's main thread, where the interpreter may have another number for it:
// that of a thread which forked this process.
const Main = ^uint64(0)

// Call is a call of a function, as an interpreter has it.
type Call struct{ At, Code, Instruction uint64 }

// Lock is the state of an interpreter's lock; nothing where it cannot be read.
type Lock struct {
	At     uint64
	Holder uint64 // Thread.At of who holds it; where it is not locked, who did so last, or 0
	Locked bool
	// Switches is how often it went to another thread; Counted: that is known.
	Switches uint64
	Counted  bool
}

// Ends are how far a walk came: to the outermost call of a thread; and whether that was the innermost one at its end.
type Ends struct{ Outermost, Innermost bool }

// Runtime knows where things are in the memory of the processes of one version of a language.
type Runtime interface {
	// Threads goes through the threads of the process, at most MaxThreads. It gives how many things it went through.
	Threads(each func(Thread)) (n int)
	// Walk follows the calls of a thread from the innermost on.
	Walk(t Thread, into []Call) (calls []Call, ends Ends, err error)
	// Remains reports whether the thread that Walk has read last is still one of the interpreter, and the same.
	Remains(t Thread) bool
	// LockOf is where the state of a lock is.
	LockOf(in uint64) uint64
	Lock(at uint64) Lock
	// Key is of the code at an address, and Code is that code.
	Key(code uint64) (Key, error)
	Code(Key) (*Code, error)
	// Alive is an error where the memory of the process is gone.
	Alive() error
}

// Process is a process that runs an interpreter. It is not for use by several goroutines at once.
type Process struct {
	Version string // "3.11.2"

	pid      int
	runtime  Runtime
	close    func() error
	nativeID func(tid int) int // number of a thread in the process's own namespace

	threads         map[uint64]Thread // by nativeID
	calls, searchAt int               // of Stacks
	seen            Lock              // by the last walk of this call
	codes           map[Key]*Code
	checked         map[Call]check
	codeBytes       int
	walked, common  []Call
}

// NewProcess is a process by what reads its memory.
func NewProcess(version string, r Runtime) *Process {
	return &Process{
		Version: version, runtime: r, close: func() error { return nil },
		nativeID: func(tid int) int { return tid },
		threads:  map[uint64]Thread{}, codes: map[Key]*Code{}, checked: map[Call]check{},
	}
}

// Language is how a process that runs an interpreter is known.
type Language struct {
	Name    string // "Python"
	Library string // part of the name of a library that has it, where the program itself has not
	// Arch is the machine on which it is known where things are; empty for all of 64 bits.
	Arch string
	// Variables that it exports (symbol.Process.Variables). What has not the first is none.
	Variables []string
	// Identify finds what reads the memory, by the addresses of Variables.
	Identify func(mem io.ReaderAt, at []uint64) (Runtime, string, error)
}

// Open finds an interpreter in a process: its program, or a library. It takes what /proc/PID/mem takes: the same user,
// or CAP_SYS_PTRACE. That file stays open until Close, and is read without these rights then.
func (l *Language) Open(fs hostfs.FS, pid int) (*Process, error) {
	p, err := l.open(fs, pid)
	if errors.Is(err, os.ErrPermission) {
		err = fmt.Errorf("%w: %w", ErrPrivilege, err)
	}
	if err != nil {
		return nil, fmt.Errorf("looking for %s in process %d: %w", l.Name, pid, err)
	}
	return p, nil
}

func (l *Language) open(fs hostfs.FS, pid int) (*Process, error) {
	mapped, err := symbol.OpenProcess(fs, pid, symbol.Files{})
	if err != nil {
		return nil, err
	}
	at := mapped.Variables(l.Library, l.Variables...)
	if at == nil {
		return nil, ErrNone
	}
	if l.Arch != "" && l.Arch != runtime.GOARCH {
		return nil, fmt.Errorf("%w: on %s it is", ErrVersion, l.Arch)
	}
	mem, err := fs.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return nil, err
	}
	r, version, err := l.Identify(mem, at)
	if err != nil {
		mem.Close()
		return nil, err
	}
	p := NewProcess(version, r)
	p.pid, p.close = pid, mem.Close
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
		if !ok && len(known) < MaxThreads {
			id = hostfs.NamespacePID(fs, tid)
			known[tid] = id
		}
		return id
	}
}

// Close ends the access to the memory of the process.
func (p *Process) Close() error { return p.close() }
