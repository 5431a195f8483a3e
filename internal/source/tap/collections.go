//go:build linux

package tap

import (
	"debug/elf"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
	"slowpath/internal/source/hostfs"
)

// collectors are runtimes that report garbage collections by probes (USDT) that are built in. Only those of clients
// whose replies lay unread, or whose event loops stalled, are hooked: a probe that fires costs about a microsecond, and
// small collections are frequent.
var collectors = []struct{ provider, begin, end string }{
	{"python", "gc__start", "gc__done"},
	{"hotspot", "gc__begin", "gc__end"},
}

// minCollection: shorter ones are not recorded. CPython collects its youngest objects in microseconds, all the time.
const minCollection = int64(1e6)

// thread is one of a process.
type thread struct{ process, tid uint32 }

// collectionWatch hooks runtimes.
type collectionWatch struct {
	programs [2]*ebpf.Program // begin, end; nil where the kernel does not take them
	files    Files
	links    map[uint32][]link.Link // by process
	hooked   map[uint32]bool
	runtime  map[uint32]string // by process
	began    map[thread]uint64
}

func newCollectionWatch(programs map[string]*ebpf.Program, files Files) *collectionWatch {
	return &collectionWatch{
		programs: [2]*ebpf.Program{programs[kernelProgOnCollectionBegin], programs[kernelProgOnCollectionEnd]},
		files:    files, links: map[uint32][]link.Link{}, hooked: map[uint32]bool{}, runtime: map[uint32]string{},
		began: map[thread]uint64{},
	}
}

// hook has the runtime of a process watched, if it has one with probes, and gives its name.
func (w *collectionWatch) hook(pid uint32) (runtime string, err error) {
	if w.hooked[pid] || w.programs[0] == nil {
		return "", nil
	}
	w.hooked[pid] = true
	paths, unread := runtimeFiles(w.files, pid)
	for _, path := range paths {
		err := withELF(path, func(f *elf.File, name string) error {
			probes, found := findCollector(f)
			if found == "" {
				return nil
			}
			runtime = found
			return w.attach(name, pid, probes)
		})
		switch {
		case runtime != "" && err != nil:
			return "", fmt.Errorf("attaching to %s: %w", path, err)
		case runtime != "":
			w.runtime[pid] = runtime
			return runtime, nil
		}
	}
	if errors.Is(unread, hostfs.ErrTooLarge) {
		return "", unread
	}
	return "", nil // another file, or one that is no program, has no probes
}

// attach has the programs called at the probes of a file. Links to many places need no right but CAP_PERFMON; those to
// one, which are all that kernels before 6.6 have, need CAP_SYS_ADMIN in some versions, and so may be refused.
func (w *collectionWatch) attach(name string, pid uint32, probes [2]probe) error {
	ex, err := link.OpenExecutable(name)
	if err != nil {
		return err
	}
	for i, p := range probes {
		o := &link.UprobeMultiOptions{PID: pid, Addresses: []uint64{p.at}}
		if p.semaphore != 0 {
			o.RefCtrOffsets = []uint64{p.semaphore}
		}
		l, err := ex.UprobeMulti(nil, w.programs[i], o)
		if err != nil && !HooksLater() { // an old kernel says that the arguments are wrong
			l, err = ex.Uprobe("", w.programs[i], &link.UprobeOptions{
				Address: p.at, RefCtrOffset: p.semaphore, PID: int(pid),
			})
		}
		if err != nil {
			return err
		}
		w.links[pid] = append(w.links[pid], l)
	}
	return nil
}

func (w *collectionWatch) Close() error {
	var errs []error
	for _, links := range w.links {
		for _, l := range links {
			errs = append(errs, l.Close())
		}
	}
	return errors.Join(errs...)
}

// drop stops to watch a process.
func (w *collectionWatch) drop(pid uint32) {
	_ = closeAll(w.links[pid]) // its process has ended, or is of no use
	maps.DeleteFunc(w.began, func(of thread, _ uint64) bool { return of.process == pid })
	delete(w.links, pid)
	delete(w.hooked, pid)
	delete(w.runtime, pid)
}

// findCollector searches for probes of a runtime in a file; it has none where its name is empty.
func findCollector(f *elf.File) (probes [2]probe, runtime string) {
	all := probesOf(f)
	for _, c := range collectors {
		begin, ok := all[c.provider+":"+c.begin]
		end, also := all[c.provider+":"+c.end]
		if ok && also {
			return [2]probe{begin, end}, c.provider
		}
	}
	return probes, ""
}

// runtimeFiles are the executable of a process and the libraries of runtimes that it has mapped: their paths on this
// host. An error says that the libraries are not known.
func runtimeFiles(files Files, pid uint32) ([]string, error) {
	out := []string{files.Path(fmt.Sprintf("/proc/%d/exe", pid))}
	libraries, err := mappedFiles(files, pid, func(base string) bool {
		return strings.HasPrefix(base, "libpython") || base == "libjvm.so"
	})
	return append(out, libraries...), err
}

// collection records a garbage collection when it ends.
func (t *Tap) collection(e *kernelCollectionEvent) {
	w, of := t.collections, thread{e.Tgid, e.Tid}
	if e.Ended == 0 {
		w.began[of] = e.Now
		return
	}
	from, ok := w.began[of]
	delete(w.began, of)
	if ns := int64(e.Now - from); !ok || ns < minCollection {
		return
	}
	t.Sink.Event(recording.Event{
		TimeNs: t.time(from), DurationNs: int64(e.Now - from), Source: recording.SourceTap,
		Kind:    recording.KindCollection,
		Subject: recording.ProcessPrefix + itoa(int(e.Tgid)),
		Detail:  recording.Detail(recording.CollectionDetail{TID: int(e.Tid), Runtime: w.runtime[e.Tgid]}),
	})
}

// watchCollections hooks the runtime of a client that left a reply unread for long, or whose event loop stalled. The
// watch goes on where it cannot.
func (t *Tap) watchCollections(pid uint32) {
	t.ends.watch(pid)
	runtime, err := t.collections.hook(pid)
	if err != nil {
		p := t.recorder.process(pid)
		t.blind(t.Nodes[0].Address, "garbage collections of "+p.String(), firstLine(err),
			"run as root on a kernel with CONFIG_UPROBES")
		return
	}
	if runtime != "" {
		t.Sink.Sample(recording.Sample{
			TimeNs: t.Clock.Now(), Source: recording.SourceTap,
			Subject: recording.ProcessPrefix + itoa(int(pid)), Name: series.CollectorWatched.Name, Value: 1,
		})
	}
}
