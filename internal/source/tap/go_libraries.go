//go:build linux

package tap

import (
	"debug/elf"
	"debug/gosym"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf/link"
	"golang.org/x/arch/x86/x86asm"
)

// goLibrary is a client library for Go, by the names of functions behind the path of its package. Of those on one line
// the first that a program has counts: the others are of other versions.
type goLibrary struct {
	path string
	// enter are functions in which goroutines make a call or send a pipeline, with all retries.
	enter [][]string
	// take get a connection for what follows, where that is a call of its own of the library's users.
	take [][]string
	// waits is the whole name of where the pool has a goroutine wait for a connection, called by one of waiters.
	waits   string
	waiters []string
}

// goRedis are the functions of go-redis. Version 9.23 has new ones below the old, which are parts of their callers.
func goRedis(path string) goLibrary {
	return goLibrary{
		path: path,
		enter: [][]string{
			{".(*baseClient).processStartingAt", ".(*baseClient).process", ".(*baseClient).defaultProcess"},
			{".(*baseClient).generalProcessPipelineFrom", ".(*baseClient).generalProcessPipeline"},
		},
		waits:   path + "/internal/pool.(*ConnPool).waitTurn",
		waiters: []string{"/internal/pool.(*ConnPool).getConn", "/internal/pool.(*ConnPool).Get"},
	}
}

// goLibraries have a pool. That of rueidis has the connections that are for one goroutine at a time: of dedicated
// clients and blocking commands, and of all where it is told not to pipeline. Its other calls share connections, which
// no goroutine waits for.
var goLibraries = []goLibrary{
	goRedis("github.com/redis/go-redis/v9"),
	goRedis("github.com/go-redis/redis/v9"),
	goRedis("github.com/go-redis/redis/v8"),
	goRedis("github.com/go-redis/redis/v7"),
	goRedis("github.com/go-redis/redis"),
	{
		path:    "github.com/gomodule/redigo/redis",
		enter:   [][]string{{".(*activeConn).Do"}, {".(*activeConn).DoWithTimeout"}},
		take:    [][]string{{".(*Pool).GetContext", ".(*Pool).get"}},
		waits:   "github.com/gomodule/redigo/redis.(*Pool).waitVacantConn",
		waiters: []string{".(*Pool).GetContext", ".(*Pool).get"},
	},
	{
		path: "github.com/redis/rueidis",
		enter: [][]string{
			{".(*mux).blocking"},
			{".(*mux).blockingMulti"},
			{".(*dedicatedSingleClient).Do"},
			{".(*dedicatedSingleClient).DoMulti"},
			{".(*dedicatedClusterClient).Do"},
			{".(*dedicatedClusterClient).DoMulti"},
		},
		take:    [][]string{{".(*singleClient).Dedicate"}, {".(*singleClient).Dedicated"}},
		waits:   "sync.(*Cond).Wait",
		waiters: []string{".(*pool).Acquire"},
	},
}

// goLocks are the functions of Go's runtime by which goroutines wait for a sync.Mutex or sync.RWMutex that is not free.
// They end in goWaits, which has the goroutine sleep by the first of goSleeps that a program has.
var (
	goLocks = []string{
		"internal/sync.runtime_SemacquireMutex", "sync.runtime_SemacquireMutex", "sync.runtime_SemacquireRWMutex",
		"sync.runtime_SemacquireRWMutexR",
	}
	goWaits  = "runtime.semacquire1"
	goSleeps = []string{"runtime.goparkunlock", "runtime.gopark"}
	// goWakes is by which a goroutine gives back a lock that others wait for.
	goWakes = "runtime.semrelease1"
)

// Bounds of Go programs, which can be made to say anything.
const (
	maxGoFunctions  = 128 << 20 // bytes of the table of functions
	maxFunctionCode = 64 << 10  // bytes of the code of a function
	maxCheck        = 6         // instructions of the check of the stack, at the beginning of a function,
	maxErrorCheck   = 8         // and of that of an error, after a call
)

// Why the functions of a Go program cannot be hooked.
var (
	errNoGoLibrary = errors.New("it has none of the functions by which calls of go-redis, redigo and rueidis are known")
	errNoGoTable   = errors.New("the table of its functions cannot be read")
	errGoABI       = errors.New("it was built by Go before 1.17, or stripped after another linker than Go's")
	errGoCode      = errors.New("its code is not what the Go compiler makes of this function")
)

// goHooks are where functions of a Go program are hooked: offsets in its file, and cookies.
type goHooks struct {
	file      *elf.File
	functions map[string]goFunction
	at        link.UprobeMultiOptions
}

// goPlaces are where the client libraries in a Go program are hooked, and where its goroutines wait for locks. Without
// the latter lockErr says why.
func goPlaces(f *elf.File) (calls, locks link.UprobeMultiOptions, lockErr, err error) {
	functions, err := goFunctions(f)
	if err != nil {
		return calls, locks, nil, err
	}
	h := goHooks{file: f, functions: functions}
	for _, l := range goLibraries {
		if err := h.addLibrary(l); err != nil {
			return calls, locks, nil, err
		}
	}
	if len(h.at.Addresses) == 0 {
		return calls, locks, nil, errNoGoLibrary
	}
	l := goHooks{file: f, functions: functions}
	lockErr = l.addLocks()
	return h.at, l.at, lockErr, nil
}

// add adds a place in a function.
func (h *goHooks) add(hook kernelGoHook, name string, find func(elf.Machine, []byte) (at int, ok bool)) error {
	code, at, err := h.functions[name].code(h.file)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	place, ok := find(h.file.Machine, code)
	if !ok {
		return fmt.Errorf("%s: %w", name, errGoCode)
	}
	h.at.Addresses = append(h.at.Addresses, at+uint64(place))
	h.at.Cookies = append(h.at.Cookies, uint64(hook))
	return nil
}

// addReturn adds where a function goes on after it has called another one.
func (h *goHooks) addReturn(hook kernelGoHook, name, callee string) error {
	return h.add(hook, name, func(machine elf.Machine, code []byte) (int, bool) {
		return jumpAfterCall(machine, code, int64(h.functions[callee].entry)-int64(h.functions[name].entry))
	})
}

// first is the first of some functions that the program has; empty: it has none of them.
func (h *goHooks) first(path string, names []string) string {
	for _, name := range names {
		if _, ok := h.functions[path+name]; ok {
			return path + name
		}
	}
	return ""
}

// addLocks adds the waits for locks.
func (h *goHooks) addLocks() error {
	for _, name := range goLocks {
		if _, ok := h.functions[name]; !ok {
			continue
		}
		if err := h.add(kernelGoHookGO_LOCK, name, stackCheck); err != nil {
			return err
		}
	}
	if len(h.at.Addresses) == 0 {
		return nil // nothing in it has such a lock
	}
	if err := h.add(kernelGoHookGO_UNLOCK, goWakes, stackCheck); err != nil {
		return err
	}
	return h.addReturn(kernelGoHookGO_WOKEN, goWaits, h.first("", goSleeps))
}

// addLibrary adds the functions of one library.
func (h *goHooks) addLibrary(l goLibrary) error {
	for _, of := range []struct {
		hook      kernelGoHook
		functions [][]string
	}{{kernelGoHookGO_ENTER, l.enter}, {kernelGoHookGO_TAKE, l.take}} {
		for _, names := range of.functions {
			name := h.first(l.path, names)
			if name == "" {
				continue
			}
			if err := h.add(of.hook, name, stackCheck); err != nil {
				return err
			}
		}
	}
	_, has := h.functions[l.waits]
	if name := h.first(l.path, l.waiters); has && name != "" {
		return h.addReturn(kernelGoHookGO_GOT, name, l.waits)
	}
	return nil
}

// goFunction is where the code of a function is, counted from the begin of all code.
type goFunction struct{ entry, end uint64 }

// goFunctions reads the table of functions that each program of Go has, also without symbols. Of it those of the known
// libraries are kept.
func goFunctions(f *elf.File) (map[string]goFunction, error) {
	for _, name := range []string{".gopclntab", ".data.rel.ro.gopclntab"} {
		s := f.Section(name)
		if s == nil {
			continue
		}
		if s.Type == elf.SHT_NOBITS || s.Size > maxGoFunctions || s.FileSize > maxGoFunctions {
			return nil, fmt.Errorf("%w: it has %d bytes", errNoGoTable, s.Size)
		}
		data, err := s.Data()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errNoGoTable, err)
		}
		return functionsIn(data)
	}
	return nil, errNoGoTable
}

func functionsIn(pclntab []byte) (map[string]goFunction, error) {
	t, err := gosym.NewTable(nil, gosym.NewLineTable(pclntab, 0))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoGoTable, err)
	}
	wanted := map[string]bool{goWaits: true, goWakes: true}
	for _, name := range slices.Concat(goLocks, goSleeps) {
		wanted[name] = true
	}
	for _, l := range goLibraries {
		for _, name := range slices.Concat(slices.Concat(l.enter...), slices.Concat(l.take...), l.waiters) {
			wanted[l.path+name] = true
		}
		wanted[l.waits] = true
	}
	out := map[string]goFunction{}
	for _, fn := range t.Funcs {
		if wanted[fn.Name] {
			out[fn.Name] = goFunction{fn.Entry, fn.End}
		}
	}
	return out, nil
}

// code reads a function, and says where in the file it is. It begins with the check of the stack: else it is somewhere
// else, or the program's g is not in a register.
func (fn goFunction) code(f *elf.File) (code []byte, at uint64, err error) {
	size := fn.end - fn.entry
	if fn.end <= fn.entry || size > maxFunctionCode {
		return nil, 0, errNoGoTable
	}
	for _, base := range textStarts(f) {
		for _, p := range f.Progs {
			addr := base + fn.entry
			if p.Type != elf.PT_LOAD || p.Flags&elf.PF_X == 0 || addr < p.Vaddr || addr-p.Vaddr+size > p.Filesz {
				continue
			}
			code = make([]byte, size)
			if _, err := p.ReadAt(code, int64(addr-p.Vaddr)); err != nil {
				return nil, 0, fmt.Errorf("reading its code: %w", err)
			}
			if _, ok := stackCheck(f.Machine, code); ok {
				return code, addr - p.Vaddr + p.Off, nil
			}
		}
	}
	return nil, 0, errGoABI
}

// textStarts are the addresses from which the table of functions may count: 0, up to Go 1.17; where the section of the
// code begins; or further in, where another linker has put code of C before that of Go.
func textStarts(f *elf.File) []uint64 {
	out := []uint64{0}
	if s := f.Section(".text"); s != nil {
		out = append(out, s.Addr)
	}
	symbols, err := f.Symbols()
	if err != nil {
		return out
	}
	for _, s := range symbols {
		if s.Name == "runtime.text" {
			out = append(out, s.Value)
		}
	}
	return out
}

// stackCheck is where a function jumps at its begin if the stack is used up: it compares the stack pointer with g's
// limit, the third word of g, by the register that has g (cmd/internal/obj/x86/obj6.go and arm64/obj7.go: stacksplit).
func stackCheck(machine elf.Machine, code []byte) (at int, ok bool) {
	if machine == elf.EM_AARCH64 {
		const limitOfG = 0xf9400b90 // MOVD 16(g), R16
		if len(code) < 4 || binary.LittleEndian.Uint32(code) != limitOfG {
			return 0, false
		}
		return armJump(code, 4)
	}
	compared := false
	for range maxCheck {
		in, err := x86asm.Decode(code[min(at, len(code)):], 64)
		if machine != elf.EM_X86_64 || err != nil {
			return 0, false
		}
		if m, ok := in.Args[1].(x86asm.Mem); ok && in.Op == x86asm.CMP && m.Base == x86asm.R14 && m.Disp == 16 {
			compared = true
		}
		if in.Op == x86asm.JBE && compared {
			return at, true
		}
		at += in.Len
	}
	return 0, false
}

// jumpAfterCall is the first conditional jump after a call of the function at a distance from this one's begin: the
// check of the error that it returns.
func jumpAfterCall(machine elf.Machine, code []byte, callee int64) (at int, ok bool) {
	if machine == elf.EM_AARCH64 {
		for at := 0; at+4 <= len(code); at += 4 {
			const call = 0b100101 // BL, and 26 bits of a signed distance in words
			in := binary.LittleEndian.Uint32(code[at:])
			if in>>26 == call && int64(at)+int64(int32(in<<6)>>6)*4 == callee {
				return armJump(code, at+4)
			}
		}
		return 0, false
	}
	after := 0 // instructions since the call, from 1 on
	for at < len(code) && after <= maxErrorCheck {
		in, err := x86asm.Decode(code[at:], 64)
		if err != nil {
			return 0, false
		}
		to, jumps := in.Args[0].(x86asm.Rel)
		switch {
		case in.Op == x86asm.CALL && jumps && int64(at+in.Len)+int64(to) == callee && after == 0:
			after = 1
		case after > 0 && (in.Op == x86asm.CALL || in.Op == x86asm.RET || in.Op == x86asm.JMP):
			return 0, false
		case after > 0 && jumps:
			return at, true
		case after > 0:
			after++
		}
		at += in.Len
	}
	return 0, false
}

// armJump is the first conditional jump of the next instructions.
func armJump(code []byte, from int) (at int, ok bool) {
	for at := from; at+4 <= len(code) && at < from+4*maxErrorCheck; at += 4 {
		in := binary.LittleEndian.Uint32(code[at:])
		// B.cond; CBZ, CBNZ (Arm Architecture Reference Manual, C4.1, branches)
		if in&0xff000010 == 0x54000000 || in&0x7e000000 == 0x34000000 {
			return at, true
		}
	}
	return 0, false
}
