// Package server is the source of what a server says of itself (evidence tier T0): INFO, SLOWLOG, COMMANDLOG,
// LATENCY, CLIENT LIST, CONFIG GET and CLUSTER, asked for at a cadence whose cost in the server's time is measured and
// kept within a budget.
//
// A command that the server forbids or does not know becomes a blind spot, not an error. Replies are untrusted: parsers
// are bounded and never panic. Of commands that users sent only names and sizes are kept.
package server

import "slowpath/internal/recording"

// Kinds of events of this source beyond those of package recording.
const (
	// KindStatsReset is a CONFIG RESETSTAT: counters fell without a restart. Detail is empty.
	KindStatsReset = "stats-reset"
)

// Names of the snapshots. Their bodies:
const (
	// JSON object of text fields of INFO and CLUSTER INFO; at the first poll and at each change
	SnapshotInfo         = "info"
	SnapshotClients      = "clients"         // a JSON object per line: Client
	SnapshotClientCounts = "clients-summary" // JSON: ClientCounts
	SnapshotConfig       = "config"          // JSON object of strings: parameter → value, never a secret
	SnapshotMemory       = "memory-stats"    // JSON object of numbers: MEMORY STATS, nested names joined by a dot
	SnapshotClusterNodes = "cluster-nodes"   // the reply to CLUSTER NODES
)

// RestartDetail is the Detail of a restart event; its TimeNs is when the server began.
type RestartDetail struct {
	RunIDBefore   string `json:"run_id_before,omitempty"`
	RunIDAfter    string `json:"run_id_after,omitempty"`
	UptimeSeconds int64  `json:"uptime_seconds"`
}

// RoleDetail is the Detail of a role-change event.
type RoleDetail struct {
	From string `json:"from"`
	To   string `json:"to"`
}

const source = recording.SourceServer
