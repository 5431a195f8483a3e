//go:build linux

package tap

import (
	"debug/elf"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"slowpath/internal/recording"
)

// internals are functions of servers (Redis 5 to 8, Valkey) that hold the event loop and run a few times per second at
// most, with what they do. Those that run at each turn of the loop (activeExpireCycle, performEvictions,
// flushAppendOnlyFile) are left out: their hooks would cost more than they tell.
var internals = []struct{ symbol, what string }{
	{"databasesCron", "databasesCron: expiry, defragmentation, rehashing"},
	{"clientsCron", "clientsCron: looking after the clients"},
	{"activeDefragCycle", "activeDefragCycle: defragmentation"},
	{"replicationCron", "replicationCron"},
	{"clusterCron", "clusterCron"},
	{"evictionTimeProc", "evictionTimeProc: eviction"},
	{"_dictExpand", "_dictExpand: a table of the hash grows"},
	{"redisFork", "redisFork: fork"},
	{"rdbSave", "rdbSave: writing the dump in the event loop"},
	{"rewriteAppendOnlyFileBackground", "rewriteAppendOnlyFileBackground"},
	{"clusterGenNodesDescription", "clusterGenNodesDescription: text of CLUSTER NODES"},
	{"clusterReplyMultiBulkSlots", "clusterReplyMultiBulkSlots: reply of CLUSTER SLOTS"},
	{"genRedisInfoString", "genRedisInfoString: text of INFO"},
	{"emptyDbStructure", "emptyDbStructure: FLUSH"},
	{"emptyData", "emptyData: FLUSH"},
	{"replicationCreateMasterClient", "replicationCreateMasterClient"},
	{"readSyncBulkPayload", "readSyncBulkPayload: loading the dump of the primary"},
}

// hookInternals hooks the functions that a server's binary names. What it does not name stays the loop's own work.
func (t *Tap) hookInternals(pid int) error {
	path := fmt.Sprintf("/proc/%d/exe", pid)
	has, err := symbolsOf(path)
	if err != nil {
		return fmt.Errorf("reading the names in the server's binary: %w", err)
	}
	o := &link.UprobeMultiOptions{PID: uint32(pid)}
	var names []string
	for i, f := range internals {
		if has[f.symbol] {
			names, o.Cookies = append(names, f.symbol), append(o.Cookies, uint64(i))
		}
	}
	if len(names) == 0 {
		return errors.New("its binary names none of them (it is stripped)")
	}
	ex, err := link.OpenExecutable(path)
	if err != nil {
		return fmt.Errorf("opening the server's binary: %w", err)
	}
	for _, hook := range []struct {
		program string
		all     func([]string, *ebpf.Program, *link.UprobeMultiOptions) (link.Link, error)
		one     func(string, *ebpf.Program, *link.UprobeOptions) (link.Link, error)
	}{{"on_enter", ex.UprobeMulti, ex.Uprobe}, {"on_leave", ex.UretprobeMulti, ex.Uretprobe}} {
		p := t.kernel.coll.Programs[hook.program]
		if l, err := hook.all(names, p, o); err == nil {
			t.kernel.links = append(t.kernel.links, l)
			continue
		}
		// Hooks of many functions at once came with 6.6.
		for i, name := range names {
			l, err := hook.one(name, p, &link.UprobeOptions{PID: pid, Cookie: o.Cookies[i]})
			if err != nil {
				return fmt.Errorf("hooking %s: %w", name, err)
			}
			t.kernel.links = append(t.kernel.links, l)
		}
	}
	return nil
}

// symbolsOf are the names of functions in an ELF file.
func symbolsOf(path string) (map[string]bool, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all, err := functionsOf(f)
	out := map[string]bool{}
	for name := range all {
		out[name] = true
	}
	return out, err
}

// functionsOf are the addresses of functions in an ELF file by their names, those that are exported and those for
// debuggers.
func functionsOf(f *elf.File) (map[string]uint64, error) {
	out := map[string]uint64{}
	for _, read := range []func() ([]elf.Symbol, error){f.DynamicSymbols, f.Symbols} {
		all, err := read()
		if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
			return nil, err
		}
		for _, s := range all {
			if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Section != elf.SHN_UNDEF {
				out[s.Name] = s.Value
			}
		}
	}
	return out, nil
}

// inner books what a function of the server took.
func (b *book) inner(e *kernelInnerEvent) {
	n, ok := b.serving[e.Tgid]
	if !ok || int(e.Which) >= len(internals) {
		return
	}
	f := internals[e.Which]
	from, to := b.time(e.From), b.time(e.To)
	h := b.history(e.Tid)
	h.inner = remember(h.inner, deed{span: span{from, to}, culprit: f.what})
	b.Sink.Event(recording.Event{
		TimeNs: from, DurationNs: to - from, Source: recording.SourceTap, Subject: n.Address,
		Kind:   recording.KindInternal,
		Detail: recording.Detail(recording.InternalDetail{Function: f.symbol, What: f.what, TID: int(e.Tid)}),
	})
}
