package tap

import (
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// Kernels before 6.9 accept a loop only if it is closed by a jump. Which instruction closes it is decided by the
// compiler, so that an innocent change of a program can make it unusable there.
func TestLoopsAreClosedByJumps(t *testing.T) {
	spec, err := loadKernel()
	if err != nil {
		t.Fatal(err)
	}
	for name, program := range spec.Programs {
		if from, ok := fallThroughLoop(graphOf(t, program)); ok {
			t.Errorf("%s: a loop is closed by instruction %d, which is no jump: %v", name, from.at, from.ins.Source())
		}
	}
}

// TestFallThroughLoopIsFound is a loop that is entered in its middle, by the jump at 0.
func TestFallThroughLoopIsFound(t *testing.T) {
	body := asm.Instructions{
		asm.Ja.Label("enter"),
		asm.Add.Imm(asm.R1, 1).WithSymbol("again"),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("enter"),
		asm.JLT.Imm(asm.R1, 16, "again"),
		asm.Return(),
	}
	program := &ebpf.ProgramSpec{Instructions: body}
	if from, ok := fallThroughLoop(graphOf(t, program)); !ok || from.at != 1 {
		t.Errorf("the loop is not found: %v, at %d", ok, from.at)
	}
}

// An edge goes to an instruction by its index.
type edge struct {
	to   int
	jump bool // a loop may be closed by it
}

type node struct {
	at    int // as the kernel counts, from the start of the program
	ins   asm.Instruction
	edges []edge // in the order in which the kernel walks them
}

// graphOf is the control flow of a program, with its functions.
func graphOf(t *testing.T, program *ebpf.ProgramSpec) []node {
	t.Helper()
	labels, nodes := map[string]int{}, []node{}
	for iter := program.Instructions.Iterate(); iter.Next(); {
		if symbol := iter.Ins.Symbol(); symbol != "" {
			labels[symbol] = len(nodes)
		}
		nodes = append(nodes, node{at: int(iter.Offset), ins: *iter.Ins})
	}
	byOffset := map[int]int{}
	for i, n := range nodes {
		byOffset[n.at] = i
	}
	for i := range nodes {
		n := &nodes[i]
		target := func() int {
			if to, ok := labels[n.ins.Reference()]; ok && n.ins.Reference() != "" {
				return to
			}
			to, ok := byOffset[n.at+1+int(n.ins.Offset)]
			if !ok {
				t.Fatalf("instruction %d jumps into nothing", n.at)
			}
			return to
		}
		next := edge{to: i + 1}
		switch op := n.ins.OpCode; {
		case n.ins.IsLoadOfFunctionPointer(): // it is called by bpf_loop
			n.edges = []edge{next, {to: target()}}
		case !op.Class().IsJump():
			n.edges = []edge{next}
		case op.JumpOp() == asm.Exit:
		case op.JumpOp() == asm.Call:
			n.edges = []edge{next}
			if n.ins.IsFunctionCall() {
				n.edges = append(n.edges, edge{to: target()})
			}
		case op.JumpOp() == asm.Ja:
			n.edges = []edge{{target(), true}}
		default:
			n.edges = []edge{{i + 1, true}, {target(), true}}
		}
	}
	return nodes
}

// fallThroughLoop walks a program as check_cfg of Linux 6.1 does, and returns the instruction that it rejects.
func fallThroughLoop(nodes []node) (node, bool) {
	const (
		unseen = iota
		open   // on the path from the start
		done
	)
	state, walked := make([]int, len(nodes)), make([]int, len(nodes))
	path := []int{0}
	state[0] = open
	for len(path) > 0 {
		i := path[len(path)-1]
		if walked[i] == len(nodes[i].edges) {
			state[i], path = done, path[:len(path)-1]
			continue
		}
		e := nodes[i].edges[walked[i]]
		walked[i]++
		switch {
		case state[e.to] == unseen:
			state[e.to], path = open, append(path, e.to)
		case state[e.to] == open && !e.jump:
			return nodes[i], true
		}
	}
	return node{}, false
}
