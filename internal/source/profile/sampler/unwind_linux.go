package sampler

import (
	"debug/elf"

	"slowpath/internal/source/profile/symbol"
)

// maxCallers bounds a stack.
const maxCallers = 256

// code is what unwinding needs of a process.
type code interface {
	Mapped(addr uint64) bool
	Rule(addr uint64, innermost bool) *symbol.Rule
}

// unwinder follows callers on one machine.
type unwinder struct{ regs symbol.Registers }

func newUnwinder(arch string) (unwinder, error) {
	machine := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[arch]
	r, err := symbol.RegistersOf(machine)
	return unwinder{r}, err
}

// walk gives the addresses of a stack, the innermost first, and whether its outermost callers were not found.
func (u unwinder) walk(p code, r raw) (places []uint64, cut bool) {
	regs := r.Regs
	base := regs[u.regs.Stack]
	pc := regs[u.regs.Place]
	for len(places) < maxCallers {
		if !p.Mapped(pc) {
			// Not a return address: what was taken for a frame pointer was another number. Address 0 comes after the
			// first function of a thread.
			return places, pc != 0 || len(places) == 0
		}
		places = append(places, pc)
		at := pc
		if len(places) > 1 {
			at-- // a return address is after the call, which may be the last instruction of a function
		}
		next, last, ok := uint64(0), false, false
		if rule := p.Rule(at, len(places) == 1); rule != nil {
			next, last, ok = u.byRule(rule, &regs, r, base, len(places) == 1)
		} else if next, ok = u.byFrame(&regs, r, base); !ok {
			return u.chained(p, places, pc, r)
		}
		if last {
			return places, false
		}
		if !ok {
			return places, true
		}
		pc = next
	}
	return places, true
}

// byRule goes to the caller as .eh_frame says.
func (u unwinder) byRule(rule *symbol.Rule, regs *[33]uint64, r raw, base uint64, first bool) (pc uint64, last,
	ok bool,
) {
	if rule.Last {
		return 0, true, true
	}
	if rule.Register >= uint64(len(regs)) {
		return 0, false, false
	}
	cfa := regs[rule.Register] + uint64(rule.Offset)
	if cfa < regs[u.regs.Stack] || cfa == regs[u.regs.Stack] && !first {
		return 0, false, false // stacks grow downwards
	}
	if rule.InMemory {
		if pc, ok = r.word(cfa+uint64(rule.Return), base); !ok {
			return 0, false, false
		}
	} else if !first || u.regs.Return == u.regs.Place {
		return 0, false, false
	} else {
		pc = regs[u.regs.Return]
	}
	for _, s := range rule.Saved {
		if v, ok := r.word(cfa+uint64(s.Offset), base); ok && s.Register < uint64(len(regs)) {
			regs[s.Register] = v
		}
	}
	if frame := regs[u.regs.Frame]; rule.Bare && frame+16 == cfa { // it has made its frame
		regs[u.regs.Frame], _ = r.word(frame, base) // 0, which leads nowhere, where it was not copied
	}
	regs[u.regs.Stack] = cfa
	return pc, false, true
}

// byFrame goes to the caller by the frame pointer: it points to that of the caller, above which the return address is.
func (u unwinder) byFrame(regs *[33]uint64, r raw, base uint64) (pc uint64, ok bool) {
	at := regs[u.regs.Frame]
	if at < regs[u.regs.Stack] {
		return 0, false
	}
	up, ok1 := r.word(at, base)
	pc, ok2 := r.word(at+8, base)
	if !ok1 || !ok2 {
		return 0, false
	}
	regs[u.regs.Frame], regs[u.regs.Stack] = up, at+16
	return pc, true
}

// chained continues with the frame pointers that the kernel followed, where they pass the same address: stacks of
// interpreters are deeper than the copy.
func (u unwinder) chained(p code, places []uint64, pc uint64, r raw) ([]uint64, bool) {
	chain := r.User[:min(int(r.UserBytes)/8, len(r.User))]
	for i, at := range chain {
		if at != pc {
			continue
		}
		for _, more := range chain[i+1:] {
			if len(places) == maxCallers || !p.Mapped(more) {
				return places, true
			}
			places = append(places, more)
		}
		return places, len(chain) == len(r.User)
	}
	return places, true
}
