//go:build linux

package tap

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf/link"

	"slowpath/internal/recording"
)

// internals are functions of servers (Redis 5 to 8, Valkey) that hold the event loop and run a few times per second at most, with what they
// do. Those that run at each turn of the loop (activeExpireCycle, performEvictions, flushAppendOnlyFile) are left out: their hooks would
// cost more than they tell.
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

// hookInternals hooks the functions that a server's binary names. What it does not name stays the loop's own work without a name.
func (t *Tap) hookInternals(pid int) (hooked int, err error) {
	ex, err := link.OpenExecutable(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return 0, fmt.Errorf("opening the server's binary: %w", err)
	}
	for i, f := range internals {
		o := &link.UprobeOptions{PID: pid, Cookie: uint64(i)}
		enter, err := ex.Uprobe(f.symbol, t.kernel.coll.Programs["on_enter"], o)
		if errors.Is(err, link.ErrNoSymbol) {
			continue
		}
		if err != nil {
			return hooked, fmt.Errorf("hooking %s: %w", f.symbol, err)
		}
		leave, err := ex.Uretprobe(f.symbol, t.kernel.coll.Programs["on_leave"], o)
		if err != nil {
			return hooked, errors.Join(fmt.Errorf("hooking the end of %s: %w", f.symbol, err), enter.Close())
		}
		t.kernel.links = append(t.kernel.links, enter, leave)
		hooked++
	}
	return hooked, nil
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
	b.Sink.Event(recording.Event{TimeNs: from, DurationNs: to - from, Source: recording.SourceTap, Subject: n.Address, Kind: recording.KindInternal,
		Detail: recording.Detail(recording.InternalDetail{Function: f.symbol, What: f.what, TID: int(e.Tid)})})
}
