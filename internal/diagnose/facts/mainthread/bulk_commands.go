package mainthread

import (
	"slices"
	"strings"

	"slowpath/internal/recording/series"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
)

// Bounds of commands that move bytes.
const (
	// bulkBytesPerNs: a command that moves bytes at this rate spends its time on moving them. A copy into fresh memory
	// runs at 1.3-10 GB/s, a walk over small elements at less than half of that (measured: GET of 10 MB 1.3 GB/s,
	// HGETALL of 200 fields of 100 kB 1.7 GB/s, SMEMBERS of 10^6 members 0.07 GB/s).
	// Bound: noted, below the lower end of copies.
	bulkBytesPerNs = 1.0
	// MinBulkBytes is the least size in bytes of an argument or a reply that counts as big: about a millisecond.
	MinBulkBytes = account.BigFreeBytes
	// MinFreeBytes is the least fall of used_memory in bytes that counts as a freed big value.
	MinFreeBytes = account.BigFreeBytes
)

// isBulk reports whether a command's time was spent on the bytes of its arguments or of its reply.
func isBulk(n *facts.Node, s account.Suspect) bool {
	name, _, _ := strings.Cut(s.Command, " ")
	if s.ArgBytes >= MinBulkBytes && float64(s.ArgBytes) >= bulkBytesPerNs/degree.Many*float64(s.DurationNs) {
		return true
	}
	ns := float64(s.DurationNs) * float64(max(s.Count, 1))
	if all := usecNs(n, s); all > 0 {
		ns = max(ns, all)
	}
	need := bulkBytesPerNs
	if account.ConstantTime(s.Command) {
		need /= degree.Many // it has nothing else to do than to copy, however slowly
	}
	least := max(need*ns, MinBulkBytes)
	return replyingCommands[name] && n.GrowthAround(series.TotalNetOutputBytes, s) >= least ||
		storingCommands[name] && n.GrowthAround(series.TotalNetInputBytes, s) >= least
}

// usecNs is the time in nanoseconds that commandstats counted for a command around the suspect.
func usecNs(n *facts.Node, s account.Suspect) float64 {
	of := series.CommandUsec(series.InCommandstats(s.Command))
	return of.Ns(n.GrowthAround(of, s))
}

// isFree reports whether a command of constant time was long because it freed something big.
func isFree(n *facts.Node, name string, s account.Suspect) bool {
	if !account.ConstantTime(s.Command) {
		return strings.HasSuffix(name, "STORE") && n.MemoryFall(s) >= MinFreeBytes &&
			n.MemoryFall(s) >= bulkBytesPerNs/degree.Many*float64(s.DurationNs)
	}
	fell := n.MemoryFall(s) >= MinFreeBytes
	switch {
	case freeingCommands[name] && name != "SET" && name != "MSET":
		return s.Busy || fell || !HostWatched(n)
	case freeingCommands[name]:
		return fell || s.Busy && s.DurationNs >= account.MinSeenBusyNs
	default:
		return fell && slices.ContainsFunc(series.Expired(), func(gone series.Name) bool {
			return n.GrowthAround(gone, s) > 0
		})
	}
}

// MinOversizedBatch is the number of commands, keys or arguments from which a batch is too large, and of clients from
// which a list of all is: 1000 take about a millisecond of the event loop, and a larger batch is hardly faster
// (redis.io, pipelining: "batches having each a reasonable number, for instance 10k"; measured gains end near 100).
// Bound: noted, a millisecond at 1 µs each.
const MinOversizedBatch = 1000
