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

	"slowpath/internal/recording"
)

// hook is a program and what is lost where the kernel lacks its tracepoint.
type hook struct {
	program string // its function in bpf; its section names the tracepoint
	losing  string // what cannot be seen without it; empty: nothing works without it
}

// functions are the programs of internals.go; they are loaded, and attached to a server's binary later.
var functions = []string{"on_enter", "on_leave"}

var hooks = []hook{
	{"on_switch", ""},
	{"on_waking", ""},
	{"on_exit", ""},
	{"on_ready", ""},
	{"on_recv", ""},
	{"on_send", ""},
	{"on_state", "connections that open and close"},
	{"on_sending", "when a send began (calls of clients begin when it ended)"},
	{"on_retransmit", "segments that TCP sent again"},
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
	blind []recording.BlindSpot
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
	if n, ok := c[maxOps].(uint32); ok {
		spec.Maps["ops"].MaxEntries, spec.Maps["hists"].MaxEntries = n, 2*n
	}
	kernel, err := btf.LoadKernelSpec()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoBTF, err)
	}
	l := &loaded{}
	var wanted []string
	for _, h := range hooks {
		place := attachTo(spec.Programs[h.program].SectionName)
		var def *btf.Typedef
		switch err := kernel.TypeByName("btf_trace_"+place, &def); {
		case err == nil:
			wanted = append(wanted, h.program)
		case h.losing == "":
			return nil, fmt.Errorf("%w: %s", ErrNoHook, place)
		default:
			l.blind = append(l.blind, recording.BlindSpot{What: h.losing, Why: "this kernel has no tracepoint " + place, Enable: "a newer kernel"})
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
		l.blind = append(l.blind, recording.BlindSpot{What: "functions inside of the server", Why: "this kernel has no uprobe_multi links", Enable: "Linux 6.6 or newer"})
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

// explain says which of the reasons of this package an error of the kernel is. Without the right to load anything it is EPERM, whatever was
// loaded first; a program that the verifier refuses gives EACCES.
func explain(err error) error {
	var ve *ebpf.VerifierError
	if errors.Is(err, unix.EPERM) || !errors.As(err, &ve) && errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("%w: %w", ErrPrivilege, err)
	}
	return fmt.Errorf("%w: %w", ErrRejected, err)
}
