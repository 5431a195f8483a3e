package symbol

import (
	"debug/elf"
	"encoding/binary"
	"fmt"

	"github.com/go-delve/delve/pkg/dwarf/frame"
)

// Rule says how to come from a function to its caller at one place of the code, as .eh_frame has it: the canonical
// frame address (CFA, the stack's pointer before the call) is a register and an offset, and registers of the caller are
// saved at offsets from it.
type Rule struct {
	Register uint64 // by its number in DWARF
	Offset   int64
	Saved    []Saved
	Return   int64 // where the return address is, from the CFA,
	InMemory bool  // if it is; else it is still in its register
	Last     bool  // there is no caller: the first function of a thread
	Bare     bool  // where registers are saved is not known
}

// Saved is a register of the caller.
type Saved struct {
	Register uint64
	Offset   int64 // from the CFA
}

// rules are those of one table of a file, read when they are first needed.
type rules struct {
	section []byte // nil once it is read
	at      uint64 // its address; 0: it is .debug_frame
	entries frame.FrameDescriptionEntries
	known   map[uint64]*Rule
}

// maxRules bounds the memory of one file.
const maxRules = 100_000

// rule is the rule for an address of the linker's; nil where the file has none. Go programs have only .debug_frame,
// which does not say where frame pointers are saved: it is good for the innermost function, which may have no frame.
func (f *File) rule(addr uint64, innermost bool) *Rule {
	if r := f.exceptions.rule(addr); r != nil || !innermost {
		return r
	}
	return f.debugging.rule(addr)
}

func (r *rules) rule(addr uint64) *Rule {
	if r.section != nil {
		r.entries, r.section, r.known = parseFrames(r.section, r.at), nil, map[uint64]*Rule{}
	}
	if len(r.entries) == 0 {
		return nil
	}
	if known, ok := r.known[addr]; ok {
		return known
	}
	out := r.make(addr)
	if len(r.known) < maxRules {
		r.known[addr] = out
	}
	return out
}

// parseFrames reads .eh_frame, or .debug_frame where addr is 0. What cannot be parsed counts as none.
func parseFrames(data []byte, addr uint64) (entries frame.FrameDescriptionEntries) {
	defer func() { // of a file that is cut short, or malicious
		if recover() != nil {
			entries = nil
		}
	}()
	all, err := frame.Parse(data, binary.LittleEndian, 0, 8, addr)
	if err != nil {
		return nil
	}
	return frame.FrameDescriptionEntries{}.Append(all) // sorted
}

func (r *rules) make(addr uint64) (out *Rule) {
	defer func() {
		if recover() != nil {
			out = nil
		}
	}()
	entry, err := r.entries.FDEForPC(addr)
	if err != nil {
		return nil
	}
	c, err := entry.EstablishFrame(addr)
	// an expression: the table of jumps into libraries, and signal handlers
	if err != nil || c.CFA.Rule != frame.RuleCFA {
		return nil
	}
	out = &Rule{Register: c.CFA.Reg, Offset: c.CFA.Offset, Bare: r.at == 0}
	for reg, rule := range c.Regs {
		switch {
		case reg == c.RetAddrReg && rule.Rule == frame.RuleUndefined:
			out.Last = true
		case reg == c.RetAddrReg && rule.Rule == frame.RuleOffset:
			out.Return, out.InMemory = rule.Offset, true
		case rule.Rule == frame.RuleOffset:
			out.Saved = append(out.Saved, Saved{reg, rule.Offset})
		}
	}
	return out
}

// Registers of this machine by their numbers in DWARF.
type Registers struct{ Stack, Frame, Return, Place int }

// RegistersOf are those of a machine (the psABI of each).
func RegistersOf(m elf.Machine) (Registers, error) {
	switch m {
	case elf.EM_X86_64:
		return Registers{Stack: 7, Frame: 6, Return: 16, Place: 16}, nil
	case elf.EM_AARCH64:
		return Registers{Stack: 31, Frame: 29, Return: 30, Place: 32}, nil
	}
	return Registers{}, fmt.Errorf("no unwinding for %v", m)
}
