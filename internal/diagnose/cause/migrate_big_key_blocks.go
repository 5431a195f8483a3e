package cause

import (
	"slices"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/diagnose/facts/nodes"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// migrateBigKeyBlocks: in the main thread, MIGRATE writes a whole value to another server and waits for the reply;
// RESTORE on the other end builds it in one go.
var migrateBigKeyBlocks = Cause{
	ID:      "migrate-big-key-blocks",
	Class:   ServerStall,
	Explain: explainMigrate,
}

// sentByServer reports whether it is known that a RESTORE is the other half of a MIGRATE.
func sentByServer(n *facts.Node, s account.Suspect) bool {
	return s.Command != "RESTORE" || caller.IsServerProcess(s.Process) || migratedElsewhere(n)
}

// migratedElsewhere reports whether another watched node was asked to MIGRATE.
func migratedElsewhere(n *facts.Node) bool {
	return slices.ContainsFunc(n.Case.Nodes, func(o *facts.Node) bool {
		return o != n && o.Growth(series.CommandCalls("migrate")) > 0
	})
}

func explainMigrate(n *facts.Node) *Finding {
	h := mainthread.ClaimOfSuspects(n,
		func(s account.Suspect) bool { return facts.IsMigration(s) && !nodes.MigratedByProxy(n, s) })
	if !h.Matters() {
		return nil
	}
	f := finding(n, h.Claim)
	worst := h.Suspects[0]
	f.supportCommands(n, h.Suspects)
	f.supportWaits(n, h, worst.Command)
	f.supportMovedKeys(n, h, "MIGRATE", "RESTORE-ASKING", "RESTORE")
	if worst.Source == recording.SourceTap && worst.OnCPUNs < worst.DurationNs/2 {
		f.support(recording.SourceTap, float64(worst.OnCPUNs), "ns",
			"in the longest, %s, the thread was on the CPU for %s: otherwise it slept, waiting for the other server",
			format.Brief(worst.DurationNs), format.Brief(worst.OnCPUNs))
	}
	if worst.Command != "MIGRATE" { // MIGRATE may sleep: it waits for the other server
		f.doubtStalls(n, h)
	}
	if !sentByServer(n, worst) {
		f.Title = "RESTORE of a big value blocks the server that receives it"
		f.doubt(recording.SourceServer, 0, "", "whether another server sent RESTORE is not known: it is the other "+
			"half of MIGRATE, or a program that copies a database")
	}
	f.FixSteps = migrateFix(n)
	return f
}

func migrateFix(n *facts.Node) []remedy.Step {
	clustered := facts.LastValue(n.Series(series.ClusterEnabled)) == 1
	if !clustered {
		return []remedy.Step{remedy.SplitBigKeys, {
			ID: "copy-by-replication", Kind: remedy.Change, Or: true,
			Text: "Where all data moves: make the receiver a replica (REPLICAOF), and promote it when it has the data",
			Risk: "a replica drops the data that it has",
		}}
	}
	return []remedy.Step{
		remedy.SplitBigKeys,
		remedy.MigrateByReplication(n),
		change("longer-node-timeout", "Keep cluster-node-timeout above the longest MIGRATE: otherwise the blocked "+
			"node is taken for failed"),
	}
}
