package account

import (
	"fmt"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// infoSuspects turns the counters of jobs that no command shows into suspects: what the loop spent on each between two
// polls.
func infoSuspects(rec *recording.Recording, node string) []Suspect {
	j := jobs{rec, node}
	out := append(j.expiry(), j.eviction()...)
	out = append(out, j.defrag()...)
	out = append(out, j.frees()...)
	return append(out, j.bulk()...)
}

type jobs struct {
	rec  *recording.Recording
	node string
}

func (j jobs) of(s series.Name) recording.Series { return j.rec.Of(s, j.node) }

// rose is by how much counters together rose within a step of another.
func (j jobs) rose(st recording.Step, of ...series.Name) (all float64) {
	for _, s := range of {
		before, _ := j.of(s).At(st.FromNs)
		after, _ := j.of(s).At(st.ToNs)
		all += after - before
	}
	return all
}

func (j jobs) suspect(kind string, st recording.Step, ns float64, count int, text string) Suspect {
	return Suspect{
		Kind: kind, Node: j.node, FromNs: st.FromNs, ToNs: st.ToNs, DurationNs: int64(ns), Count: count,
		Source: byInfo, Text: text,
	}
}

const (
	// expireShare of its time is what the server gives the active expire cycle at most.
	// Bound: server, ACTIVE_EXPIRE_CYCLE_SLOW_TIME_PERC of expire.c at the default active-expire-effort.
	expireShare = 0.25
	// DefaultHz is how often per second the server does its periodic work.
	// Bound: server, the default of hz (CONFIG_DEFAULT_HZ).
	DefaultHz = 10
)

// expiry is the active expire cycle: its CPU time where INFO has it (6.0), else how often it used up its time
// (expire.c: a quarter of each period of hz, 25 ms at the default of 10).
func (j jobs) expiry() []Suspect {
	var out []Suspect
	cpu := j.of(series.ExpireCycleCPU)
	for _, st := range cpu.Steps() {
		ns, keys := series.ExpireCycleCPU.Ns(st.Delta), j.rose(st, series.Expired()...)
		switch {
		case keys > 0 && ns/keys >= BigFreeBytes*freeNsPerByte: // not their number took the time, but the size of one
			out = append(out, j.suspect(KindFree, st, ns, 1, fmt.Sprintf("freeing %.0f expired keys (%.0f ms)", keys,
				st.Delta)))
		default:
			out = append(out, j.suspect(KindExpire, st, ns, 1, fmt.Sprintf("active expire cycle (%.0f ms in this "+
				"second)", st.Delta)))
		}
	}
	if len(cpu) > 0 {
		return out
	}
	slice := expireShare * 1e9 / DefaultHz
	if hz, ok := j.of(series.Hz).Last(); ok && hz > 0 {
		slice = expireShare * 1e9 / hz
	}
	for _, st := range j.of(series.ExpiredTimeCapReachedCount).Steps() {
		out = append(out, j.suspect(KindExpire, st, slice, int(st.Delta),
			fmt.Sprintf("active expire cycle (used up its time %.0f times)", st.Delta)))
	}
	return out
}

// What the eviction of a small key takes. In step with the writes it was measured at 1.0 µs on 7.0.15 (allkeys-lru,
// sampling and freeing, a million keys); where one write must wait for thousands, among four million keys, at 9 µs, as
// hardly one is in a CPU cache.
const (
	evictKeyNs  = 1500   // Bound: noted, on 7.0.15; that it is half more is a guess.
	evictManyNs = 10_000 // Bound: noted, on 7.0.15.
)

// eviction is the time above maxmemory where INFO has it (7.0; only of what one round did not finish), or an estimate
// by the number of keys.
func (j jobs) eviction() []Suspect {
	var out []Suspect
	for _, st := range j.of(series.EvictedKeys).Steps() {
		each := float64(evictKeyNs)
		if st.Delta >= degree.Several*j.rose(st, series.TotalCommandsProcessed) {
			each = evictManyNs
		}
		ns := max(st.Delta*each, series.TotalEvictionExceededTime.Ns(j.rose(st, series.TotalEvictionExceededTime)))
		out = append(out, j.suspect(KindEvict, st, ns, 1, fmt.Sprintf("eviction at maxmemory (%.0f keys)", st.Delta)))
	}
	return out
}

func (j jobs) defrag() []Suspect {
	var out []Suspect
	for _, st := range j.of(series.TotalActiveDefragTime).Steps() {
		out = append(out, j.suspect(KindDefrag, st, series.TotalActiveDefragTime.Ns(st.Delta), 1,
			fmt.Sprintf("active defragmentation (%.0f ms in this second)", st.Delta)))
	}
	return out
}

const (
	// BigFreeBytes is from when on a key is big by the memory that it frees: some 10^4 elements, ms of free().
	// Bound: noted, 60-200 ns for an element of 100 bytes: 0.6 to 2 ms for a megabyte.
	BigFreeBytes = 1 << 20
	// freeNsPerByte: measured 60-200 ns for an element of about 100 bytes; an upper bound, as only time in which calls
	// waited is attributed to it.
	// Bound: noted, the upper end.
	freeNsPerByte = 2
)

// frees are big keys that expired or were evicted: memory fell by much for few keys.
func (j jobs) frees() []Suspect {
	var out []Suspect
	memory := j.of(series.UsedMemory)
	for i := 1; i < len(memory); i++ {
		st := recording.Step{FromNs: memory[i-1].TimeNs, ToNs: memory[i].TimeNs, Delta: memory[i-1].Value -
			memory[i].Value}
		for _, gone := range [][]series.Name{series.Expired(), {series.EvictedKeys}} {
			if keys := j.rose(st, gone...); keys > 0 && st.Delta/keys >= BigFreeBytes {
				out = append(out, j.suspect(KindFree, st, st.Delta*freeNsPerByte, 1,
					fmt.Sprintf("freeing %.0f MB of %.0f %s", st.Delta/1e6, keys, gone[0].Name)))
			}
		}
	}
	return out
}

const (
	// bulkNsPerByte is what a byte of a big argument or reply costs the main thread: measured 0.15 ns (1 MB values) to
	// 0.84 ns (10 MB, fresh memory for each) on 7.0.15 over loopback, 25 GB/s memory; a network card costs more than
	// loopback.
	// Bound: noted, between the two.
	bulkNsPerByte = 0.5
	// bulkCommand is from when on arguments and replies are big: larger ones have buffers of their own.
	// Bound: server, PROTO_IOBUF_LEN and PROTO_REPLY_CHUNK_BYTES.
	bulkCommand = 16 << 10
)

// BulkNs is how long copying so many bytes takes the main thread, in nanoseconds, by estimate.
func BulkNs(bytes float64) int64 { return int64(bytes * bulkNsPerByte) }

// bulk is the copying of big arguments and replies, where a part of the time between two polls went to it. SLOWLOG does
// not show it: it ends before the reply is written.
func (j jobs) bulk() []Suspect {
	var out []Suspect
	for _, d := range []struct {
		bytes, buffer series.Name
		text          string
	}{
		{series.TotalNetOutputBytes, series.ClientRecentMaxOutputBuffer, "writing %.0f MB of replies"},
		{series.TotalNetInputBytes, series.ClientRecentMaxInputBuffer, "reading %.0f MB of arguments"},
	} {
		for _, st := range j.of(d.bytes).Steps() {
			ns := st.Delta * bulkNsPerByte
			buffer, _ := j.of(d.buffer).At(st.ToNs)
			each := st.Delta / max(1, j.rose(st, series.TotalCommandsProcessed))
			if ns >= degree.Part*float64(st.ToNs-st.FromNs) && (each >= bulkCommand || buffer >= BigFreeBytes) {
				out = append(out, j.suspect(KindBulk, st, min(ns, float64(st.ToNs-st.FromNs)), 1, fmt.Sprintf(d.text,
					st.Delta/1e6)))
			}
		}
	}
	return out
}
