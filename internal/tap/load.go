//go:build linux

package tap

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"
)

// hook is a place in the kernel and the programs that can sit there, the best first.
type hook struct {
	name   string   // for people
	losing string   // what cannot be seen without it; empty: nothing works without it
	ways   []string // programs, by the names of their functions in tap.bpf.c
}

// functions are the programs of internals.go; they are loaded, and attached to a server's binary later.
var functions = []string{"on_enter", "on_leave"}

var hooks = []hook{
	{"sched_switch", "", []string{"on_switch", "on_switch_before_518"}},
	{"sched_waking", "", []string{"on_waking"}},
	{"sched_process_exit", "", []string{"on_exit"}},
	{"sk_data_ready", "", []string{"on_ready"}},
	{"sock_recv_length", "", []string{"on_recv"}},
	{"sock_send_length", "", []string{"on_send"}},
	{"inet_sock_set_state", "connections that open and close", []string{"on_state"}},
	{"tcp_sendmsg_locked", "when a send began (calls of clients begin when it ended)", []string{"on_sending"}},
	{"tcp_retransmit_skb", "segments that TCP sent again", []string{"on_retransmit"}},
}

// anyVersion stands where kernels before 5.0 wanted their own version. To find that out, memory is read that a process with file capabilities
// may not read.
const anyVersion = 1

// attachTo is the tracepoint of a program's section name "tp_btf/sched_switch".
func attachTo(section string) string { return section[strings.IndexByte(section, '/')+1:] }

// loaded is the programs in the kernel. The links are kept here: a link that nobody refers to is collected, and detaches.
type loaded struct {
	coll  *ebpf.Collection
	links []link.Link
	blind []string // hooks that could not be attached, with why
}

func (l *loaded) Close() error {
	// All at once: each waits until no CPU runs its program any more.
	errs := make([]error, len(l.links))
	var wg sync.WaitGroup
	for i, k := range l.links {
		wg.Go(func() { errs[i] = k.Close() })
	}
	wg.Wait()
	l.links = nil
	if l.coll != nil {
		l.coll.Close()
	}
	return errors.Join(errs...)
}

// ringBytes among constants is the size of the ring buffer, a power of two.
const ringBytes = "ring_bytes"

// constants are set in the programs before they are loaded.
type constants map[string]any

func load(c constants) (*loaded, error) {
	if !allowed() {
		return nil, ErrPrivilege
	}
	if err := rlimit.RemoveMemlock(); err != nil && !errors.Is(err, os.ErrPermission) {
		return nil, fmt.Errorf("raising the limit of locked memory: %w", err)
	}
	spec, err := loadKernel()
	if err != nil {
		return nil, fmt.Errorf("reading the embedded programs: %w", err)
	}
	for name, value := range c {
		if name == ringBytes {
			continue
		}
		if err := spec.Variables[name].Set(value); err != nil {
			return nil, fmt.Errorf("setting %s: %w", name, err)
		}
	}
	if n, ok := c[ringBytes].(uint32); ok {
		spec.Maps["events"].MaxEntries = n
	}
	kernel, err := btf.LoadKernelSpec()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoBTF, err)
	}
	l := &loaded{}
	var wanted []string
	for _, h := range hooks {
		way, why := choose(h, spec, kernel)
		switch {
		case way != "":
			wanted = append(wanted, way)
		case h.losing == "":
			return nil, fmt.Errorf("%w: %s", ErrNoHook, why)
		default:
			l.blind = append(l.blind, h.name+": "+why)
		}
	}
	for name := range spec.Programs {
		if !slices.Contains(wanted, name) && !slices.Contains(functions, name) {
			delete(spec.Programs, name)
		}
	}
	for _, name := range functions {
		spec.Programs[name].KernelVersion = anyVersion
	}
	if l.coll, err = ebpf.NewCollection(spec); err != nil {
		// Hooks of many functions at once came with 6.6; all else does without.
		for _, name := range functions {
			delete(spec.Programs, name)
		}
		var again error
		if l.coll, again = ebpf.NewCollection(spec); again != nil {
			return nil, explain(again)
		}
		l.blind = append(l.blind, "functions inside of the server: the kernel has no uprobe_multi links")
	}
	for _, name := range wanted {
		k, err := link.AttachTracing(link.TracingOptions{Program: l.coll.Programs[name], AttachType: ebpf.AttachTraceRawTp})
		if err != nil {
			l.Close()
			return nil, fmt.Errorf("attaching %s: %w", name, explain(err))
		}
		l.links = append(l.links, k)
	}
	return l, nil
}

// choose finds the first way whose tracepoint the kernel has, with as many arguments as the program reads.
func choose(h hook, spec *ebpf.CollectionSpec, kernel *btf.Spec) (way, why string) {
	for _, w := range h.ways {
		p := spec.Programs[w]
		var def *btf.Typedef
		if err := kernel.TypeByName("btf_trace_"+attachTo(p.SectionName), &def); err != nil {
			why = "this kernel has no tracepoint " + attachTo(p.SectionName)
			continue
		}
		return w, ""
	}
	return "", why
}

// explain says which of the reasons of this package an error of the kernel is. Without the right to load anything it is EPERM, whatever was
// loaded first; a program that the verifier refuses gives EACCES.
func explain(err error) error {
	var ve *ebpf.VerifierError
	if errors.Is(err, unix.EPERM) || !errors.As(err, &ve) && errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("%w: %w", ErrPrivilege, err)
	}
	return fmt.Errorf("%w: %w", ErrRejected, err)
}
