package tap

import (
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// TestStackFitsOldKernels: up to 6.7 a program and all that it calls, one in the other, share 512 bytes of stack, of
// which each function takes a multiple of 32 (check_max_stack_depth in kernel/bpf/verifier.c). Newer kernels are more
// generous.
func TestStackFitsOldKernels(t *testing.T) {
	spec, err := loadKernel()
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range spec.Programs {
		functions := byFunction(p)
		used, chain := deepest(functions, name)
		if used > 512 {
			t.Errorf("%s: %d bytes of stack: %s", name, used, strings.Join(chain, " → "))
		}
	}
}

// byFunction splits a program, with all that was linked to it, at the symbols of its functions.
func byFunction(p *ebpf.ProgramSpec) map[string]asm.Instructions {
	functions := map[string]asm.Instructions{}
	name := ""
	for _, ins := range p.Instructions {
		if s := ins.Symbol(); s != "" && !strings.HasPrefix(s, "LBB") {
			name = s
		}
		functions[name] = append(functions[name], ins)
	}
	return functions
}

// deepest is the most stack that a function takes with what it calls, in bytes, and the calls that take it.
func deepest(functions map[string]asm.Instructions, name string) (int, []string) {
	most, chain := 0, []string(nil)
	for _, ins := range functions[name] {
		if ins.IsFunctionCall() || ins.IsFunctionReference() {
			if n, c := deepest(functions, ins.Reference()); n > most {
				most, chain = n, c
			}
		}
	}
	return most + (max(stackOf(functions[name]), 1)+31)/32*32, append([]string{name}, chain...)
}

// stackOf is how many bytes below the frame pointer a function uses, by itself or by pointers that it makes.
func stackOf(all asm.Instructions) int {
	deep := 0
	for i, ins := range all {
		class := ins.OpCode.Class()
		switch {
		case class.IsLoad() && ins.Src == asm.RFP, class.IsStore() && ins.Dst == asm.RFP:
			deep = max(deep, -int(ins.Offset))
		case i > 0 && ins.OpCode.ALUOp() == asm.Add && all[i-1].OpCode.ALUOp() == asm.Mov && all[i-1].Src == asm.RFP &&
			all[i-1].Dst == ins.Dst:
			deep = max(deep, -int(ins.Constant))
		}
	}
	return deep
}
