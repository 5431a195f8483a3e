package facts

import (
	"strings"

	"slowpath/internal/diagnose/account"
)

const (
	manyArguments = 1000
	// A command that moves bytes at this rate spends its time on moving them: a copy into fresh memory runs at 1.3-10
	// GB/s, walking small elements at less than half of that (measured: GET of 10 MB 1.3 GB/s, HGETALL of 200 fields of
	// 100 kB 1.7 GB/s, SMEMBERS of 10^6 members 0.07 GB/s).
	bulkBytesPerNs = 1.0
	MinBulkBytes   = 1 << 20
	MinFreeBytes   = 1 << 20
)

// isBulk reports whether a command's time went into the bytes of its arguments or its reply.
func (n *Node) isBulk(s account.Suspect) bool {
	name, _, _ := strings.Cut(s.Command, " ")
	if s.ArgBytes >= MinBulkBytes && float64(s.ArgBytes) >= bulkBytesPerNs/10*float64(s.DurationNs) {
		return true
	}
	ns := float64(s.DurationNs) * float64(max(s.Count, 1))
	if all := n.usecNs(s); all > 0 {
		ns = max(ns, all)
	}
	need := bulkBytesPerNs
	if account.ConstantTime(s.Command) {
		need /= 10 // it has nothing else to do than to copy, however slowly
	}
	return replyingCommands[name] && n.GrowthAround("total_net_output_bytes", s) >= need*ns &&
		n.GrowthAround("total_net_output_bytes",
			s) >= MinBulkBytes ||
		storingCommands[name] && n.GrowthAround("total_net_input_bytes", s) >= need*ns &&
			n.GrowthAround("total_net_input_bytes",
				s) >= MinBulkBytes
}

// usecNs is the time that commandstats counted for the command around the suspect.
func (n *Node) usecNs(s account.Suspect) float64 {
	name := "cmdstat_" + strings.ToLower(strings.ReplaceAll(s.Command, " ", "|")) + ".usec"
	return n.GrowthAround(name, s) * 1000
}

// isFree reports whether a command of constant time was long because it freed something big.
func (n *Node) isFree(name string, s account.Suspect) bool {
	if !account.ConstantTime(s.Command) {
		return strings.HasSuffix(name, "STORE") && n.MemoryFall(s) >= MinFreeBytes &&
			n.MemoryFall(s) >= float64(s.DurationNs)/20
	}
	fell := n.MemoryFall(s) >= MinFreeBytes
	switch {
	case freeingCommands[name] && name != "SET" && name != "MSET":
		return s.Busy || fell || !n.HostWatched()
	case freeingCommands[name]:
		return fell || s.Busy && s.DurationNs >= account.SeenBusyNs
	default:
		return fell && n.GrowthAround("expired_keys", s) > 0
	}
}

const (
	// Oversized is the number of commands, or keys, from which on a batch is one: 1000 take about a millisecond of the
	// loop, and a larger batch is hardly faster (redis.io, pipelining: "batches having each a reasonable number, for
	// instance 10k"; measured gains end near 100).
	MinOversizedBatch = 1000
)
