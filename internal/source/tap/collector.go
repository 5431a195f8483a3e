//go:build linux

package tap

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"slowpath/internal/recording"
)

// collectors are runtimes that tell when they collect garbage, by probes (USDT) that are built in. They are asked only
// about clients whose replies lay unread: a probe that fires costs about a microsecond, and small collections are
// frequent.
var collectors = []struct{ provider, begin, end string }{
	{"python", "gc__start", "gc__done"},
	{"hotspot", "gc__begin", "gc__end"},
}

// minCollection: shorter ones are not written down. CPython collects its youngest objects in microseconds, all the
// time.
const minCollection = int64(1e6)

// evCollection is the type of this file's reports in the ring. It is far from those of bpf/types.h.
const evCollection = 200

// collectionMark is a report: a collection began, or ended.
type collectionMark struct {
	Type, Ended uint8
	_           [6]uint8
	At          uint64
	PidTgid     uint64
}

// collectorWatch hears runtimes.
type collectorWatch struct {
	programs [2]*ebpf.Program       // begin, end
	links    map[uint32][]link.Link // by process
	asked    map[uint32]bool
	runtime  map[uint32]string // by process
	began    map[uint64]uint64 // by thread
}

func newCollectorWatch() *collectorWatch {
	return &collectorWatch{
		links: map[uint32][]link.Link{}, asked: map[uint32]bool{}, runtime: map[uint32]string{},
		began: map[uint64]uint64{},
	}
}

// load brings the programs into the kernel, before the right to do so is given up.
func (w *collectorWatch) load(ring *ebpf.Map) (err error) {
	for i := range w.programs {
		if w.programs[i], err = collectionProgram(ring, i == 1); err != nil {
			return err
		}
	}
	return nil
}

// ask hears the runtime of a process from now on, if it has one that tells. It reports whether it does.
func (w *collectorWatch) ask(pid uint32) (runtime string, err error) {
	if w.asked[pid] {
		return "", nil
	}
	w.asked[pid] = true
	path, probes, runtime := findCollector(pid)
	if runtime == "" {
		return "", nil
	}
	ex, err := link.OpenExecutable(path)
	if err != nil {
		return "", fmt.Errorf("opening %s: %w", path, err)
	}
	for i, p := range probes {
		l, err := ex.Uprobe("", w.programs[i], &link.UprobeOptions{
			Address: p.at, RefCtrOffset: p.semaphore,
			PID: int(pid),
		})
		if err != nil {
			return "", fmt.Errorf("attaching to %s: %w", path, err)
		}
		w.links[pid] = append(w.links[pid], l)
	}
	w.runtime[pid] = runtime
	return runtime, nil
}

func (w *collectorWatch) Close() error {
	var errs []error
	for _, links := range w.links {
		for _, l := range links {
			errs = append(errs, l.Close())
		}
	}
	for _, p := range w.programs {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	return errors.Join(errs...)
}

// forget hears a process no more.
func (w *collectorWatch) forget(pid uint32) {
	for _, l := range w.links[pid] {
		l.Close() //nolint:errcheck // what it heard has ended, or is of no use
	}
	delete(w.links, pid)
	delete(w.asked, pid)
	delete(w.runtime, pid)
}

// collectionProgram passes the time and the thread on.
func collectionProgram(ring *ebpf.Map, ended bool) (*ebpf.Program, error) {
	kind := int64(evCollection)
	if ended {
		kind |= 1 << 8
	}
	const noWakeUp, size = 1, 24 // BPF_RB_NO_WAKEUP, of collectionMark
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "on_collection", Type: ebpf.Kprobe, License: "Dual MIT/GPL",
		KernelVersion: anyVersion, Instructions: asm.Instructions{
			asm.FnKtimeGetNs.Call(),
			asm.StoreMem(asm.RFP, -16, asm.R0, asm.DWord),
			asm.FnGetCurrentPidTgid.Call(),
			asm.StoreMem(asm.RFP, -8, asm.R0, asm.DWord),
			asm.LoadImm(asm.R1, kind, asm.DWord),
			asm.StoreMem(asm.RFP, -24, asm.R1, asm.DWord),
			asm.LoadMapPtr(asm.R1, ring.FD()),
			asm.Mov.Reg(asm.R2, asm.RFP),
			asm.Add.Imm(asm.R2, -size),
			asm.Mov.Imm(asm.R3, size),
			asm.Mov.Imm(asm.R4, noWakeUp),
			asm.FnRingbufOutput.Call(),
			asm.Mov.Imm(asm.R0, 0),
			asm.Return(),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("loading the program for garbage collections: %w", explain(err))
	}
	return p, nil
}

// probe is a place in a file: offsets of its instruction and of the counter that switches it on, 0 where there is none.
type probe struct{ at, semaphore uint64 }

// findCollector looks for probes in what a process runs: its executable, or the library of its runtime.
func findCollector(pid uint32) (path string, probes [2]probe, runtime string) {
	for _, path := range runtimeFiles(pid) {
		all := probesOf(path)
		for _, c := range collectors {
			begin, ok := all[c.provider+":"+c.begin]
			end, also := all[c.provider+":"+c.end]
			if ok && also {
				return path, [2]probe{begin, end}, c.provider
			}
		}
	}
	return "", probes, ""
}

// runtimeFiles are the executable of a process and the libraries of runtimes that it has mapped, as seen from here.
func runtimeFiles(pid uint32) []string {
	out := []string{fmt.Sprintf("/proc/%d/exe", pid)}
	libraries, _ := mapped(pid, func(base string) bool {
		return strings.HasPrefix(base, "libpython") ||
			base == "libjvm.so"
	})
	return append(out, libraries...)
}

// mapped are files that a process has mapped, chosen by their last name, as seen from here.
func mapped(pid uint32, want func(base string) bool) (out []string, err error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(maps)) {
		i := strings.IndexByte(line, '/')
		if i < 0 {
			continue
		}
		name := strings.TrimSpace(line[i:])
		if !want(filepath.Base(name)) || seen[name] {
			continue
		}
		seen[name] = true
		path := fmt.Sprintf("/proc/%d/root%s", pid, name)
		if _, replaced := strings.CutSuffix(name, " (deleted)"); replaced { // by an upgrade, while it runs
			span, _, _ := strings.Cut(line, " ")
			path = fmt.Sprintf("/proc/%d/map_files/%s", pid, span)
		}
		out = append(out, path)
	}
	return out, nil
}

// Bounds of what is read of a stranger's file.
const (
	maxNotes     = 1 << 20 // bytes
	stapNoteType = 3       // NT_STAPSDT
)

// probesOf reads the probes of an ELF file (https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation), by
// "provider:name".
func probesOf(path string) map[string]probe {
	f, err := elf.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	notes := f.Section(".note.stapsdt")
	if notes == nil || notes.Size > maxNotes || f.Class != elf.ELFCLASS64 {
		return nil
	}
	data, err := notes.Data()
	if err != nil {
		return nil
	}
	base := uint64(0)
	if s := f.Section(".stapsdt.base"); s != nil {
		base = s.Addr
	}
	out := map[string]probe{}
	eachProbe(data, f.ByteOrder, func(name string, at, linkedBase, semaphore uint64) {
		moved := base - linkedBase // by prelink
		if base == 0 {
			moved = 0
		}
		p := probe{at: fileOffset(f, at+moved)}
		if semaphore != 0 {
			p.semaphore = fileOffset(f, semaphore+moved)
		}
		if _, known := out[name]; !known && p.at != 0 {
			out[name] = p
		}
	})
	return out
}

// eachProbe parses notes: lengths of name and body, type, "stapsdt", three addresses, provider, name and arguments.
func eachProbe(data []byte, order binary.ByteOrder, do func(name string, at, base, semaphore uint64)) {
	pad := func(n uint32) uint64 { return (uint64(n) + 3) &^ 3 }
	for len(data) >= 12 {
		nameLen, bodyLen, kind := order.Uint32(data), order.Uint32(data[4:]), order.Uint32(data[8:])
		size := 12 + pad(nameLen) + pad(bodyLen)
		if size > uint64(len(data)) {
			return
		}
		body := data[12+pad(nameLen):][:bodyLen]
		data = data[size:]
		if kind != stapNoteType || len(body) < 24 {
			continue
		}
		words := strings.SplitN(string(body[24:]), "\x00", 3)
		if len(words) == 3 {
			do(words[0]+":"+words[1], order.Uint64(body), order.Uint64(body[8:]), order.Uint64(body[16:]))
		}
	}
}

// fileOffset is where an address of a loaded file stands in it; 0 where it does not.
func fileOffset(f *elf.File, addr uint64) uint64 {
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && addr >= p.Vaddr && addr-p.Vaddr < p.Filesz {
			return addr - p.Vaddr + p.Off
		}
	}
	return 0
}

// collection books the begin or the end of one.
func (t *Tap) collection(m *collectionMark) {
	w := t.collectors
	if m.Ended == 0 {
		w.began[m.PidTgid] = m.At
		return
	}
	from, ok := w.began[m.PidTgid]
	delete(w.began, m.PidTgid)
	if ns := int64(m.At - from); !ok || ns < minCollection {
		return
	}
	pid := uint32(m.PidTgid >> 32)
	t.Sink.Event(recording.Event{
		TimeNs: t.time(from), DurationNs: int64(m.At - from), Source: recording.SourceTap,
		Kind:    recording.KindCollection,
		Subject: recording.ProcessPrefix + itoa(int(pid)),
		Detail:  recording.Detail(recording.CollectionDetail{TID: int(uint32(m.PidTgid)), Runtime: w.runtime[pid]}),
	})
}

// askCollector hears the runtime of a client that left a reply unread for long. That it cannot be heard is no failure
// of the watch.
func (t *Tap) askCollector(pid uint32) {
	runtime, err := t.collectors.ask(pid)
	if err != nil {
		reason, _, _ := strings.Cut(err.Error(), "\n")
		t.Sink.Event(recording.Event{
			TimeNs: t.Clock.Now(), Source: recording.SourceTap, Subject: t.Nodes[0].Address,
			Kind: recording.KindBlindSpot,
			Detail: recording.Detail(recording.BlindSpot{What: "garbage collections of " + process{
				int(pid),
				t.book.names[pid],
			}.String(), Why: reason, Enable: "run as root on a kernel with CONFIG_UPROBES"}),
		})
	}
	if err == nil && runtime != "" {
		t.Sink.Sample(recording.Sample{
			TimeNs: t.Clock.Now(), Source: recording.SourceTap,
			Subject: recording.ProcessPrefix + itoa(int(pid)), Name: "collector.watched", Value: 1,
		})
	}
}
