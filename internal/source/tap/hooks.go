//go:build linux

package tap

import (
	"fmt"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"

	"slowpath/internal/recording"
)

// hook is something in the kernel that the programs must see, the programs that can see it, best first, and what is
// lost where the kernel has none of their places.
type hook struct {
	candidates []candidate
	losing     string // what cannot be seen without it; empty: nothing works without it
	// it is attached when it is needed, by attachLate: each hook costs the watched threads something even if its
	// program does nothing
	late bool
}

// candidate is a program of bpf. Its section names the tracepoint or the function of the kernel; args is how many
// arguments that must have, 0: it does not matter, since the program reads the first ones only.
type candidate struct {
	program string
	args    int
}

// processPrograms are loaded at once, and attached later to what processes run: bpf/server_functions.h, plaintext.h,
// collections.h and go_operations.h.
var processPrograms = []string{
	kernelProgOnFunctionEntry, kernelProgOnFunctionReturn, kernelProgOnSslCall, kernelProgOnSslReturn,
	kernelProgOnCollectionBegin, kernelProgOnCollectionEnd, kernelProgOnGoFunction,
}

// iterators are loaded where the kernel has iterators over open files: bpf/conn_snapshots.h.
var iterators = []string{kernelProgOnConnSnapshot, kernelProgOnConnStatus}

// losingSnapshots is what cannot be seen without the program of bpf/conn_snapshots.h.
const losingSnapshots = "which other nodes a process had sent requests to while a call of it waited"

// optionalPrograms can be left out together where a kernel does not take one of them.
type optionalPrograms struct {
	losing, enable string
	programs       []string
}

// needsUprobes is what kernels lack that do not take hooks of processes.
const needsUprobes = "a newer kernel, with CONFIG_UPROBE_EVENTS"

// losingLastUses is what cannot be seen without on_conn_status of bpf/conn_snapshots.h.
const losingLastUses = "whose calls those of the last second were"

var optional = []optionalPrograms{
	{"names of commands under TLS", needsUprobes, []string{kernelProgOnSslCall, kernelProgOnSslReturn}},
	{
		"functions inside of the server", needsUprobes,
		[]string{kernelProgOnFunctionEntry, kernelProgOnFunctionReturn},
	},
	{
		"garbage collections of clients", needsUprobes,
		[]string{kernelProgOnCollectionBegin, kernelProgOnCollectionEnd},
	},
	{"what goroutines wait for before they send", needsUprobes, []string{kernelProgOnGoFunction}},
	{losingLastUses, "a kernel that allows iterators over open files", []string{kernelProgOnConnStatus}},
	{losingSnapshots, "a kernel that allows iterators over open files", []string{kernelProgOnConnSnapshot}},
}

var hooks = []hook{
	{candidates: []candidate{{kernelProgOnSwitch, 4}, {kernelProgOnSwitch3, 3}}},
	{candidates: []candidate{{kernelProgOnWaking, 0}}},
	{candidates: []candidate{{kernelProgOnExit, 0}}},
	{candidates: []candidate{{kernelProgOnReady, 0}, {kernelProgOnReadyIn, 0}}},
	{candidates: []candidate{{kernelProgOnRecv, 0}, {kernelProgOnRecvExit, 5}, {kernelProgOnRecvExit6, 6}}},
	{candidates: []candidate{{kernelProgOnSend, 0}, {kernelProgOnSendExit, 3}}},
	{candidates: []candidate{{kernelProgOnState, 0}}, losing: "connections that open and close"},
	{
		candidates: []candidate{{kernelProgOnSending, 0}, {kernelProgOnSendingIn, 0}},
		losing:     "when a send began (calls of clients begin when it ended)", late: true,
	},
	{
		candidates: []candidate{{kernelProgOnAck, 0}},
		losing:     "when clients on other hosts acknowledged a reply", late: true,
	},
	{candidates: []candidate{{kernelProgOnRetransmit, 0}}, losing: "retransmitted segments"},
}

// Hooks that attachLate attaches. The first client whose own end is parsed makes it worthwhile to see when its sends
// begin; the first client at another address, to see each segment that comes to this host.
const (
	hookSending = kernelProgOnSending
	hookAck     = kernelProgOnAck
)

// losing is what cannot be seen without a hook.
func losing(hook string) string {
	for _, h := range hooks {
		if strings.HasPrefix(h.candidates[0].program, hook) {
			return h.losing
		}
	}
	return hook
}

// hookChooser chooses a program for each hook, by what the kernel has, never by its version.
type hookChooser struct {
	kernel   *btf.Spec
	specs    map[string]*ebpf.ProgramSpec
	hookable func(function string) error
}

// choose gives the programs to be attached at once and later, and what cannot be seen.
func (l hookChooser) choose() (programs, late []string, blind []recording.BlindSpot, err error) {
	for _, h := range hooks {
		program, err := l.best(h.candidates)
		switch {
		case err == nil && h.late:
			late = append(late, program)
		case err == nil:
			programs = append(programs, program)
		case h.losing == "":
			return nil, nil, nil, err
		default:
			blind = append(blind, recording.BlindSpot{What: h.losing, Why: err.Error(), Enable: "a newer kernel"})
		}
	}
	return programs, late, blind, nil
}

// best is the first program whose place this kernel has.
func (l hookChooser) best(candidates []candidate) (string, error) {
	var missing []string
	for _, w := range candidates {
		err := l.has(l.specs[w.program], w.args)
		if err == nil {
			return w.program, nil
		}
		missing = append(missing, err.Error())
	}
	return "", fmt.Errorf("%w: %s", ErrNoHook, strings.Join(missing, ", "))
}

// has says what the kernel lacks for a program.
func (l hookChooser) has(p *ebpf.ProgramSpec, args int) error {
	if p.AttachType == ebpf.AttachTraceRawTp {
		var def *btf.Typedef
		if err := l.kernel.TypeByName("btf_trace_"+p.AttachTo, &def); err != nil {
			return fmt.Errorf("tracepoint %s", p.AttachTo)
		}
		// void (*)(void *data, …)
		if f, ok := pointee(def.Type).(*btf.FuncProto); args != 0 && (!ok || len(f.Params) != args+1) {
			return fmt.Errorf("tracepoint %s with %d arguments", p.AttachTo, args)
		}
		return nil
	}
	var f *btf.Func
	if err := l.kernel.TypeByName(p.AttachTo, &f); err != nil {
		return fmt.Errorf("function %s", p.AttachTo)
	}
	if proto, ok := f.Type.(*btf.FuncProto); args != 0 && (!ok || len(proto.Params) != args) {
		return fmt.Errorf("function %s with %d arguments", p.AttachTo, args)
	}
	if err := l.hookable(p.AttachTo); err != nil {
		return fmt.Errorf("fentry at function %s", p.AttachTo)
	}
	return nil
}

func pointee(t btf.Type) btf.Type {
	if p, ok := t.(*btf.Pointer); ok {
		return p.Target
	}
	return nil
}

// hookable tries whether a program can be attached where a function of the kernel begins: it needs
// CONFIG_FUNCTION_TRACER and an architecture with BPF trampolines, and not all functions can be traced.
func hookable(function string) error {
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "on_probe", Type: ebpf.Tracing,
		AttachType: ebpf.AttachTraceFEntry, AttachTo: function, License: "Dual MIT/GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	if err != nil {
		return err
	}
	defer p.Close()
	k, err := link.AttachTracing(link.TracingOptions{Program: p})
	if err != nil {
		return err
	}
	return k.Close()
}
