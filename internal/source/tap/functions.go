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

// serverFunctions are functions of servers (Redis 5 to 8, Valkey) that occupy the event loop and run a few times per
// second at most, with what they do. Those that run at each event-loop iteration (activeExpireCycle, performEvictions,
// flushAppendOnlyFile) are left out: their hooks would cost more than they show.
var serverFunctions = []struct{ symbol, what string }{
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

// hookFunctions hooks the functions that a server's binary names. What it does not name stays the loop's own work.
func (t *Tap) hookFunctions(pid int) error {
	return withELF(t.Files.Path(fmt.Sprintf("/proc/%d/exe", pid)), func(f *elf.File, name string) error {
		has, err := functionsOf(f)
		if err != nil {
			return fmt.Errorf("reading the names in the server's binary: %w", err)
		}
		o := &link.UprobeMultiOptions{PID: uint32(pid)}
		for i, one := range serverFunctions {
			if at := fileOffset(f, has[one.symbol]); at != 0 {
				o.Addresses, o.Cookies = append(o.Addresses, at), append(o.Cookies, uint64(i))
			}
		}
		if len(o.Addresses) == 0 {
			return errors.New("its binary names none of them (it is stripped)")
		}
		ex, err := link.OpenExecutable(name)
		if err != nil {
			return fmt.Errorf("opening the server's binary: %w", err)
		}
		return t.hookAll(ex, o)
	})
}

// hookAll hooks the entries and the returns of functions.
func (t *Tap) hookAll(ex *link.Executable, o *link.UprobeMultiOptions) error {
	for _, hook := range []struct {
		program string
		all     func([]string, *ebpf.Program, *link.UprobeMultiOptions) (link.Link, error)
		one     func(string, *ebpf.Program, *link.UprobeOptions) (link.Link, error)
	}{{kernelProgOnFunctionEntry, ex.UprobeMulti, ex.Uprobe}, {
		kernelProgOnFunctionReturn, ex.UretprobeMulti,
		ex.Uretprobe,
	}} {
		p := t.kernel.coll.Programs[hook.program]
		if l, err := hook.all(nil, p, o); err == nil {
			t.functions[o.PID] = append(t.functions[o.PID], l)
			continue
		}
		// Hooks of many functions at once came with 6.6.
		for i, at := range o.Addresses {
			l, err := hook.one("", p, &link.UprobeOptions{PID: int(o.PID), Address: at, Cookie: o.Cookies[i]})
			if err != nil {
				return fmt.Errorf("hooking %s: %w", serverFunctions[o.Cookies[i]].symbol, err)
			}
			t.functions[o.PID] = append(t.functions[o.PID], l)
		}
	}
	return nil
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

// function records what a function of the server took.
func (r *recorder) function(e *kernelFunctionEvent) {
	n, ok := r.serving[e.Tgid]
	if !ok || int(e.Which) >= len(serverFunctions) {
		return
	}
	f := serverFunctions[e.Which]
	from, to := r.time(e.From), r.time(e.To)
	l := r.threadLog(e.Tid)
	l.functions = appendBounded(l.functions, interval{span: span{from, to}, culprit: f.what})
	r.Sink.Event(recording.Event{
		TimeNs: from, DurationNs: to - from, Source: recording.SourceTap, Subject: n.Address,
		Kind:   recording.KindInternal,
		Detail: recording.Detail(recording.InternalDetail{Function: f.symbol, What: f.what, TID: int(e.Tid)}),
	})
}
