//go:build linux

package tap

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"slowpath/internal/source/hostfs"
	"slowpath/internal/source/profile/symbol"
)

// goWatch hooks the client libraries of Go programs: bpf/go_operations.h. Its zero value hooks none.
type goWatch struct {
	program   *ebpf.Program // nil where the kernel does not take it
	processes *ebpf.Map     // of kernelGoProcess
	hooked    *ebpf.Variable
	links     map[uint32][]link.Link // by process
	locks     map[uint32][]link.Link // of its waits for locks
	functions map[uint32]*symbol.Process
	since     map[uint32]int64  // when it was hooked, of those that are
	hits      map[uint32]uint64 // up to the last look,
	lookedNs  int64             // and when that was
	reported  map[string]bool   // blind spots
}

// maxGoProcesses are hooked at a time.
const maxGoProcesses = int(kernelLimitGO_PROCESSES)

// goHitNs is what a hook costs the thread that meets it: a trap, the program, and the jump, which the kernel carries
// out itself. See docs/overhead.md.
const goHitNs = 2400

func newGoWatch(coll *ebpf.Collection) goWatch {
	return goWatch{
		program: coll.Programs[kernelProgOnGoFunction], processes: coll.Maps[kernelMapGoProcesses],
		hooked: coll.Variables[kernelVarGoHooked], links: map[uint32][]link.Link{},
		locks: map[uint32][]link.Link{}, functions: map[uint32]*symbol.Process{},
		since: map[uint32]int64{}, hits: map[uint32]uint64{},
		reported: map[string]bool{},
	}
}

var errTooManyGo = fmt.Errorf("too many other Go programs make calls (%d are hooked)", maxGoProcesses)

// hook hooks a Go program whose file this is. name is one that stays its name. noLocks is why its waits for locks are
// not hooked.
func (w *goWatch) hook(pid uint32, f *elf.File, name string, now int64) (noLocks, err error) {
	if w.program == nil || w.links[pid] != nil {
		return nil, nil
	}
	if len(w.links) >= maxGoProcesses {
		return nil, errTooManyGo
	}
	calls, locks, noLocks, err := goPlaces(f)
	if err != nil {
		return nil, err
	}
	ex, err := link.OpenExecutable(name)
	if err != nil {
		return nil, err
	}
	if err := w.processes.Put(pid, kernelGoProcess{}); err != nil {
		return nil, fmt.Errorf("naming it to the programs: %w", err)
	}
	w.since[pid] = now
	w.links[pid], err = w.attach(ex, pid, calls)
	if err == nil {
		err = w.hooked.Set(uint32(1))
	}
	if err != nil {
		w.drop(pid)
		return nil, err
	}
	if noLocks == nil && len(locks.Addresses) > 0 {
		w.locks[pid], noLocks = w.attach(ex, pid, locks)
	}
	return noLocks, nil
}

// attach hooks all places.
func (w *goWatch) attach(ex *link.Executable, pid uint32, o link.UprobeMultiOptions) (links []link.Link, err error) {
	o.PID = pid
	if HooksLater() {
		l, err := ex.UprobeMulti(nil, w.program, &o)
		if err != nil {
			return nil, err
		}
		return []link.Link{l}, nil
	}
	for i, at := range o.Addresses {
		l, err := ex.Uprobe("", w.program, &link.UprobeOptions{
			PID: int(o.PID), Address: at, Cookie: o.Cookies[i],
		})
		if err != nil {
			return links, err
		}
		links = append(links, l)
	}
	return links, nil
}

// drop stops to watch a process.
func (w *goWatch) drop(pid uint32) {
	if _, hooked := w.since[pid]; !hooked {
		return
	}
	_ = closeAll(w.links[pid]) // there is nothing to detach from any more, or nothing else to be done
	w.dropLocks(pid)
	delete(w.links, pid)
	delete(w.functions, pid)
	delete(w.since, pid)
	delete(w.hits, pid)
	_ = w.processes.Delete(pid)
}

// dropLocks reports whether waits for locks of a process were hooked. They are not any more.
func (w *goWatch) dropLocks(pid uint32) bool {
	_, hooked := w.locks[pid]
	_ = closeAll(w.locks[pid])
	delete(w.locks, pid)
	return hooked
}

func (w *goWatch) Close() error {
	all := slices.AppendSeq(slices.Collect(maps.Values(w.links)), maps.Values(w.locks))
	return closeAll(slices.Concat(all...))
}

// maxFunctionName bounds the name of a function, in bytes: a program can give it any.
const maxFunctionName = 256

// functionIn is the innermost function of a stack that is not of Go's own locks.
func (w *goWatch) functionIn(files hostfs.FS, pid uint32, stack []uint64) string {
	if _, hooked := w.locks[pid]; !hooked || stack[0] == 0 {
		return ""
	}
	p, known := w.functions[pid]
	if !known {
		p, _ = symbol.OpenProcess(files, int(pid), symbol.Files{}) // without it no function has a name
		w.functions[pid] = p
	}
	for _, at := range stack {
		if at == 0 {
			break
		}
		name := p.Function(at)
		if pkg, _, named := strings.Cut(name, "."); named && pkg != "runtime" && pkg != "sync" &&
			pkg != "internal/sync" {
			return strings.ToValidUTF8(name[:min(len(name), maxFunctionName)], "")
		}
	}
	return ""
}

func (w *goWatch) read(pid uint32) (p kernelGoProcess, err error) {
	err = w.processes.Lookup(pid, &p)
	return p, err
}

// cost is the time that the hooks took per time since the last look, by process.
func (w *goWatch) cost(now int64) map[uint32]float64 {
	ns := float64(now - w.lookedNs)
	first := w.lookedNs == 0 || ns <= 0
	w.lookedNs = now
	out := map[uint32]float64{}
	for pid := range w.links {
		p, err := w.read(pid)
		if err != nil {
			continue
		}
		if hits := p.Hits - w.hits[pid]; !first {
			out[pid] = float64(hits) * goHitNs / ns
		}
		w.hits[pid] = p.Hits
	}
	return out
}

// watchGo hooks the client library of a Go program that calls, and records where that cannot be done: then its calls
// are those on the wire.
func (t *Tap) watchGo(pid uint32, f *elf.File, name string) {
	t.ends.watch(pid)
	noLocks, err := t.goPrograms.hook(pid, f, name, t.Clock.Now())
	if err != nil && !errors.Is(err, errNoGoLibrary) {
		t.notSeenOfGo(pid, callsOfGo, firstLine(err), "a program built by Go 1.17 or newer, with one of the client "+
			"libraries go-redis, redigo and rueidis")
	}
	if noLocks != nil {
		t.notSeenOfGo(pid, locksOfGo, firstLine(noLocks), "")
	}
}

// dropGo stops to watch a process, and records what was seen.
func (t *Tap) dropGo(pid uint32) {
	t.writeLibraryWaits(pid)
	t.goPrograms.drop(pid)
}

// What may not be seen of a Go program.
const (
	callsOfGo = "what calls of %s wait for before they are sent"
	locksOfGo = "for which locks goroutines of %s wait"
)

// notSeenOfGo records what is not known of a process.
func (t *Tap) notSeenOfGo(pid uint32, unknown, why, enable string) {
	what := fmt.Sprintf(unknown, t.recorder.process(pid))
	if w := &t.goPrograms; w.reported[what] || len(w.reported) >= maxPlaintexts {
		return
	}
	t.goPrograms.reported[what] = true
	t.blind(t.Nodes[0].Address, what, why, enable)
}

// notByLibrary records that a program makes its calls by other functions of its library than those that are hooked, or
// by goroutines that work for others (go-redis 8 with a context that can be cancelled).
func (t *Tap) notByLibrary() {
	const some = 1000 // calls
	for pid := range t.goPrograms.since {
		if p, err := t.goPrograms.read(pid); err == nil && p.Others >= some && p.Others > p.Calls {
			why := "%d of %d calls were not made by the functions of its client library that are hooked, or by " +
				"another goroutine than the one that called them"
			t.notSeenOfGo(pid, callsOfGo, fmt.Sprintf(why, p.Others, p.Others+p.Calls), "")
		}
	}
}

// holdGoBudget takes the hooks off programs while all of them cost more than the budget, first off their locks.
func (t *Tap) holdGoBudget() {
	t.notByLibrary()
	cost := t.goPrograms.cost(t.Clock.Now())
	for _, pid := range tooExpensive(cost, t.Budget) {
		unknown, hooks := locksOfGo, "its client library and its locks"
		if !t.goPrograms.dropLocks(pid) {
			t.dropGo(pid)
			unknown, hooks = callsOfGo, "its client library"
		}
		t.notSeenOfGo(pid, unknown, fmt.Sprintf("hooks of %s would take %.1f %% of a core, and the budget is %.1f %%",
			hooks, cost[pid]*100, t.Budget*100), "a larger --tap-budget")
	}
}

// tooExpensive are the processes without which the others cost no more than the budget, the most expensive first.
func tooExpensive(cost map[uint32]float64, budget float64) (out []uint32) {
	if budget == 0 {
		return nil
	}
	all := 0.0
	for _, c := range cost {
		all += c
	}
	for _, pid := range slices.SortedFunc(maps.Keys(cost), func(a, b uint32) int {
		return cmp.Or(cmp.Compare(cost[b], cost[a]), cmp.Compare(a, b))
	}) {
		if all <= budget {
			break
		}
		all -= cost[pid]
		out = append(out, pid)
	}
	return out
}
