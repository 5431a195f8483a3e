//go:build linux

package tap

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"slowpath/internal/recording"
)

// anyVersion replaces the version of the kernel, which kernels before 5.0 required. To find it out, the library reads
// memory that a process with file capabilities may not read.
const anyVersion = 1

// loaded is the programs in the kernel. The links are kept here: a link that nothing refers to is garbage-collected,
// and detaches.
type loaded struct {
	coll     *ebpf.Collection
	counters []string // names, by number
	wanted   []string // programs for the hooks of this kernel,
	late     []string // and those that wait for attachLate
	links    []link.Link
	blind    []recording.BlindSpot
}

func (l *loaded) addBlind(what, why, enable string) {
	l.blind = append(l.blind, recording.BlindSpot{What: what, Why: why, Enable: enable})
}

func (l *loaded) Close() error {
	err := l.detach()
	if l.coll != nil {
		l.coll.Close()
	}
	return err
}

// attach attaches the programs that each watch needs.
func (l *loaded) attach() error { return l.attachAll(l.wanted) }

// attachLate attaches what only some watches need, if this kernel has a place for it and it is not attached yet: the
// programs whose names begin with that of the hook.
func (l *loaded) attachLate(hook string) error {
	var names []string
	l.late = slices.DeleteFunc(l.late, func(name string) bool {
		if strings.HasPrefix(name, hook) {
			names = append(names, name)
		}
		return strings.HasPrefix(name, hook)
	})
	l.wanted = append(l.wanted, names...)
	return l.attachAll(names)
}

func (l *loaded) attachAll(names []string) error {
	for _, name := range names {
		k, err := link.AttachTracing(link.TracingOptions{Program: l.coll.Programs[name]})
		if err != nil {
			return fmt.Errorf("attaching %s: %w", name, explain(err))
		}
		l.links = append(l.links, k)
	}
	return nil
}

func (l *loaded) detach() error {
	err := closeAll(l.links)
	l.links = nil
	return err
}

// closeAll closes links at once: each waits until no CPU runs its program any more.
func closeAll(links []link.Link) error {
	errs := make([]error, len(links))
	var wg sync.WaitGroup
	for i, k := range links {
		wg.Go(func() { errs[i] = k.Close() })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// constants are set in the programs before they are loaded, by name.
type constants map[string]any

// sizedBy are the maps that have as many entries as a constant says.
var sizedBy = map[string][]string{
	kernelVarMaxOps:     {kernelMapOps},
	kernelVarMaxThreads: {kernelMapThreads, kernelMapFreeThreads},
	kernelVarMaxPairs:   {kernelMapPairs, kernelMapPairSlots, kernelMapFreePairs},
}

// specWith is the specification of the programs with their constants, and the sizes of maps that depend on them.
func specWith(c constants) (*ebpf.CollectionSpec, error) {
	spec, err := loadKernel()
	if err != nil {
		return nil, fmt.Errorf("reading the embedded programs: %w", err)
	}
	for name, value := range c {
		if err := spec.Variables[name].Set(value); err != nil {
			return nil, fmt.Errorf("setting %s: %w", name, err)
		}
	}
	for name, maps := range sizedBy {
		if n, ok := c[name].(uint32); ok {
			for _, m := range maps {
				spec.Maps[m].MaxEntries = n
			}
		}
	}
	if n, ok := c[kernelVarMaxOps].(uint32); ok {
		spec.Maps[kernelMapHists].MaxEntries, spec.Maps[kernelMapOperations].MaxEntries = 2*n, 2*n
	}
	return spec, nil
}

// load loads the programs.
func load(spec *ebpf.CollectionSpec) (l *loaded, err error) {
	if !allowed() {
		return nil, ErrPrivilege
	}
	var files unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &files) == nil && files.Cur < filesOfPrograms {
		return nil, ErrFiles
	}
	if err := rlimit.RemoveMemlock(); err != nil && !errors.Is(err, os.ErrPermission) {
		return nil, fmt.Errorf("raising the limit of locked memory: %w", err)
	}
	l = &loaded{}
	if l.counters, err = counterNames(spec); err != nil {
		return nil, err
	}
	if err := l.choose(spec); err != nil {
		return nil, err
	}
	if err := l.create(spec); err != nil {
		return nil, err
	}
	return l, nil
}

// choose leaves those programs in a specification that this kernel has a place for.
func (l *loaded) choose(spec *ebpf.CollectionSpec) error {
	if errors.Is(features.HaveProgramHelper(ebpf.SocketFilter, asm.FnLoop), ebpf.ErrNotSupported) {
		return ErrNoLoop // checked first: kernels as old may lack type information, too, which alone is no help
	}
	kernel, err := btf.LoadKernelSpec()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoBTF, err)
	}
	if l.wanted, l.late, l.blind, err = (hookChooser{kernel, spec.Programs, hookable}).choose(); err != nil {
		return err
	}
	keep := slices.Concat(l.wanted, l.late, processPrograms, iterators)
	for name := range spec.Programs {
		if !slices.Contains(keep, name) {
			delete(spec.Programs, name)
		}
	}
	var context *btf.Struct
	if err := kernel.TypeByName("bpf_iter__task_file", &context); err != nil {
		for _, name := range iterators {
			delete(spec.Programs, name)
		}
		l.addBlind(losingSnapshots, "the kernel has no iterator over open files: "+err.Error(), "a newer kernel")
	}
	for _, name := range processPrograms {
		spec.Programs[name].KernelVersion = anyVersion
	}
	return nil
}

// create loads the programs that each watch needs, and then each group of those that can be left out, to the same maps:
// one that the kernel does not take costs what it sees, and nothing is loaded twice.
func (l *loaded) create(spec *ebpf.CollectionSpec) error {
	needed := spec.Copy()
	for _, o := range optional {
		for _, name := range o.programs {
			delete(needed.Programs, name)
		}
	}
	types := btf.NewCache()
	coll, err := ebpf.NewCollectionWithOptions(needed, ebpf.CollectionOptions{Cache: types})
	if err != nil {
		return explain(err)
	}
	l.coll = coll
	for _, o := range optional {
		if err := l.add(spec, o.programs, types); err != nil {
			l.addBlind(o.losing, fmt.Sprintf("the kernel does not take the programs: %v", err), o.enable)
		}
	}
	return nil
}

// add loads those of some programs that a specification has, with the maps that are there.
func (l *loaded) add(spec *ebpf.CollectionSpec, names []string, types *btf.Cache) error {
	more := spec.Copy()
	maps.DeleteFunc(more.Programs, func(name string, _ *ebpf.ProgramSpec) bool { return !slices.Contains(names, name) })
	if len(more.Programs) == 0 {
		return nil
	}
	coll, err := ebpf.NewCollectionWithOptions(more, ebpf.CollectionOptions{MapReplacements: l.coll.Maps, Cache: types})
	if err != nil {
		return err
	}
	maps.Copy(l.coll.Programs, coll.Programs)
	coll.Programs = nil // they stay
	coll.Close()
	return nil
}

// filesOfPrograms are more descriptors than the maps, programs and links take, which are less than 100: connections
// need some, too. Without any, checks of the library for what the kernel can do fail, and it names a feature.
const filesOfPrograms = 256

// explain says which of the reasons of this package an error of the kernel is. Without the right to load anything it is
// EPERM, whatever was loaded first; a program that the verifier refuses gives EACCES.
func explain(err error) error {
	var ve *ebpf.VerifierError
	if errors.Is(err, unix.EPERM) || !errors.As(err, &ve) && errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("%w: %w", ErrPrivilege, err)
	}
	return fmt.Errorf("%w: %w", ErrRejected, err)
}
