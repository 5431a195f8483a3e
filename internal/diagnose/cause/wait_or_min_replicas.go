package cause

import (
	"fmt"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// waitOrMinReplicas: WAIT and WAITAOF return when enough replicas have acknowledged what the connection wrote, or its
// fsync is done, or at their timeout (replication.c, waitCommand and waitaofCommand).
var waitOrMinReplicas = Cause{
	ID:      "wait-or-min-replicas",
	Changes: []string{"appendfsync", "repl-*"},
	Explain: explainAcks,
}

func explainAcks(n *facts.Node) *Finding {
	cl, ops := n.InState(account.AckWait), facts.NameCounts{}
	for _, c := range cl.PerCall {
		ops[n.Ledger.Slow[c.Index].Call.Op]++
	}
	var f *Finding
	known, ok := mainthread.CountedAckWaits(n)
	switch {
	case cl.Matters():
		f = finding(n, cl)
		f.support(recording.SourceTap, float64(cl.Calls), "calls", "%s are %s, and waited for acknowledgements, up to "+
			"%s in one call", ofSlow(cl.Calls, n), named(ops), format.Brief(cl.MaxNs))
	case ok && !mainthread.SeenExactly(n) && known.Blocked >= facts.HealthyMinCalls &&
		known.MeanNs >= float64(n.Ledger.ThresholdNs):
		f = finding(n, cl)
		f.Samples = known.Blocked
		f.lose(n, facts.LostAcks, known.AllNs, int64(known.MeanNs))
		ops = known.Ops
		f.support(recording.SourceServer, known.MeanNs, "ns", "%.0f calls of %s took about %s each: clients were "+
			"blocked in nothing else at %d of %d polls (commandstats, blocked_clients)", known.Calls, named(ops),
			format.Brief(int64(known.MeanNs)), known.Blocked, known.Polls)
	default:
		return nil
	}
	aof := ops["WAITAOF"] > 0 && mainthread.AOF(n).Fsync == "everysec"
	if ops["WAITAOF"] > ops["WAIT"] {
		f.Title = "WAITAOF takes long: what was written is not on disk yet, here or at replicas"
	}
	if aof {
		f.support(recording.SourceServer, 1, "s",
			"appendfsync is everysec: writes reach the disk once per second, and WAITAOF does not hurry that")
	}
	if aof && ops["WAIT"] == 0 && len(mainthread.Replicas(n)) == 0 {
		f.FixSteps = []remedy.Step{fsyncEachWrite(n)}
		return f
	}
	late := f.supportReplicas(n)
	if aof {
		f.FixSteps = append(f.FixSteps, fsyncEachWrite(n))
	}
	f.FixSteps = append(f.FixSteps, acksFix(late)...)
	return f
}

// named are the commands that wait for acknowledgements, of which there were any.
func named(ops facts.NameCounts) string {
	var names []string
	for _, op := range []string{"WAIT", "WAITAOF"} {
		if ops[op] > 0 {
			names = append(names, op)
		}
	}
	return strings.Join(names, " and ")
}

func fsyncEachWrite(n *facts.Node) remedy.Step {
	return remedy.ConfigSet(n, "fsync-each-write", "appendfsync", "always",
		"Have each write on disk before its reply: WAITAOF then returns at once").
		Risking("every write waits for the disk")
}

// supportReplicas says what the server knows of its replicas, and gives those that acknowledge late, or all where none
// is known to.
func (f *Finding) supportReplicas(n *facts.Node) (late []mainthread.Replica) {
	replicas := mainthread.Replicas(n)
	if least, ok := n.Series(series.ConnectedSlaves).Min(); ok && len(replicas) == 0 {
		f.support(recording.SourceServer, least, "replicas", "no replica was connected (connected_slaves)")
	} else if ok && least < float64(len(replicas)) {
		f.support(recording.SourceServer, least, "replicas",
			"at times only %.0f of %d replicas were connected (connected_slaves)", least, len(replicas))
	}
	for _, r := range replicas {
		if r.MaxLagSeconds > 1 { // they acknowledge once per second (replicationCron): INFO has a lag of 0 or 1
			late = append(late, r)
			f.support(recording.SourceServer, r.MaxLagSeconds, "s",
				"%s acknowledged nothing for up to %.0f s (lag), and was up to %s behind; one per second is usual",
				replicaName(r), r.MaxLagSeconds, format.Bytes(int64(r.MaxBehindBytes)))
		}
	}
	if len(late) == 0 && len(replicas) > 0 {
		f.support(recording.SourceServer, float64(len(replicas)), "replicas",
			"the server has %s, each with an acknowledgement in every second: which one is late within that, INFO "+
				"does not say", counted(len(replicas), "replica"))
		return replicas
	}
	return late
}

func replicaName(r mainthread.Replica) string {
	if r.Port == 0 {
		return "a replica"
	}
	return fmt.Sprintf("the replica at port %d", r.Port)
}

func acksFix(late []mainthread.Replica) (fix []remedy.Step) {
	if len(late) == 0 {
		fix = append(fix, change("bring-replicas-back", "Bring the replicas back that WAIT asks for, or ask for as "+
			"many as there are: it returns at its timeout with fewer, and a timeout of 0 waits for ever"))
	} else {
		var names []string
		for _, r := range late {
			names = append(names, replicaName(r))
		}
		fix = append(fix, change(remedy.CureSlowNode, "%s", "Find out why replicas are late: run slowpath doctor "+
			"against "+strings.Join(names[:min(len(names), degree.Listed)], ", ")+", and look at the path to them "+
			"(CPU quota, disk, bandwidth, distance)"))
	}
	return append(fix, remedy.Step{
		ID: "wait-less", Kind: remedy.Change, Or: true, Restart: "the application",
		Text: "Use WAIT only after writes that must not be lost, once after several writes, with a timeout that " +
			"callers can bear (Redisson: slavesSyncTimeout, checkLockSyncedSlaves)",
		Risk: "a failover may lose writes that no replica has acknowledged",
	})
}
