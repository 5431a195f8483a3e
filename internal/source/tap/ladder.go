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

// hook is something that the programs must hear of, the ways to hear of it, best first, and what is lost where the
// kernel has none of them.
type hook struct {
	ways   []way
	losing string // what cannot be seen without it; empty: nothing works without it
	// it is attached when it is needed, by attachLate: each hook costs the watched threads something even if its
	// program does nothing
	late bool
}

// way is a program of bpf. Its section names the tracepoint or the function of the kernel; args is how many arguments
// that must have, 0: it does not matter, since the program reads the first ones only.
type way struct {
	program string
	args    int
}

// functions are the programs of internals.h and tls.h; they are loaded, and attached to what a process runs later.
var functions = []string{"on_enter", "on_leave", "on_plain", "on_plain_done"}

// losingLooks is what cannot be seen without the program of looks.h, which is run by who reads.
const losingLooks = "what else a process had asked of other nodes while a call of it waited"

// optional is what can be left out where a kernel does not take it, one after the other.
var optional = []struct {
	losing   string
	programs []string
}{
	{"names of commands under TLS", []string{"on_plain", "on_plain_done"}},
	{"functions inside of the server, and names of commands under TLS", []string{"on_enter", "on_leave"}},
	{losingLooks, []string{onLook}},
}

var hooks = []hook{
	{ways: []way{{"on_switch", 4}, {"on_switch3", 3}}},
	{ways: []way{{"on_waking", 0}}},
	{ways: []way{{"on_exit", 0}}},
	{ways: []way{{"on_ready", 0}, {"on_ready_in", 0}}},
	{ways: []way{{"on_recv", 0}, {"on_recv_exit", 5}, {"on_recv_exit6", 6}}},
	{ways: []way{{"on_send", 0}, {"on_send_exit", 3}}},
	{ways: []way{{"on_state", 0}}, losing: "connections that open and close"},
	{ways: []way{{"on_sending", 0}, {"on_sending_in", 0}}, losing: "when a send began (calls of clients begin when " +
		"it ended)", late: true},
	{ways: []way{{"on_ack", 0}}, losing: "when clients on other hosts acknowledged a reply", late: true},
	{ways: []way{{"on_retransmit", 0}}, losing: "segments that TCP sent again"},
}

// Hooks that attachLate attaches: the first client whose own end is parsed makes it worth while to hear when its sends
// begin; the first client at another address, to look at each segment that comes to this host.
const (
	hookSending = "on_sending"
	hookAck     = "on_ack"
)

// losing is what cannot be seen without a hook.
func losing(hook string) string {
	for _, h := range hooks {
		if strings.HasPrefix(h.ways[0].program, hook) {
			return h.losing
		}
	}
	return hook
}

// ladder chooses a program for each hook, by what the kernel has, never by its version.
type ladder struct {
	kernel   *btf.Spec
	specs    map[string]*ebpf.ProgramSpec
	hookable func(function string) error
}

// choose gives the programs to be attached at once and later, and what cannot be seen.
func (l ladder) choose() (programs, late []string, blind []recording.BlindSpot, err error) {
	for _, h := range hooks {
		program, err := l.best(h.ways)
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
func (l ladder) best(ways []way) (string, error) {
	var missing []string
	for _, w := range ways {
		err := l.has(l.specs[w.program], w.args)
		if err == nil {
			return w.program, nil
		}
		missing = append(missing, err.Error())
	}
	return "", fmt.Errorf("%w: %s", ErrNoHook, strings.Join(missing, ", "))
}

// has says what the kernel lacks for a program.
func (l ladder) has(p *ebpf.ProgramSpec, args int) error {
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
