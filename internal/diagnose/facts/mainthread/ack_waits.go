package mainthread

import (
	"strings"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// AckWaits are waits in WAIT and WAITAOF by what the server counts: their number, and how many clients are blocked at
// each poll.
type AckWaits struct {
	// Calls is the number of WAIT and WAITAOF, Ops how many of each.
	Calls float64
	Ops   facts.NameCounts
	// Polls is the number of polls, Blocked at how many of them a client was blocked.
	Polls, Blocked int
	// MeanNs is how long one of them took on average, in nanoseconds; AllNs all together.
	MeanNs, AllNs float64
}

// CountedAckWaits are told from the number of blocked clients, which is the rate of the calls times what they take
// (Little's law). ok is false where clients may be blocked in anything else, or nothing waits.
func CountedAckWaits(n *facts.Node) (w AckWaits, ok bool) {
	w.Ops = facts.NameCounts{}
	for command := range facts.BlockingCommands {
		calls := n.Series(series.CommandCalls(series.InCommandstats(command)))
		if recording.AwaitsAcks(command) {
			w.Ops[command] = int(calls.Growth())
			w.Calls += calls.Growth()
		} else if last, _ := calls.Last(); last > 0 {
			return w, false
		}
	}
	for _, c := range caller.Clients(n) {
		if strings.Contains(c.Flags, "b") && !recording.AwaitsAcks(strings.ToUpper(c.Cmd)) {
			return w, false
		}
	}
	if p := PauseOf(n); w.Calls == 0 || p.Reported() || p.Failover || p.ClientCommands > 0 {
		return w, false
	}
	blocked := n.Series(series.BlockedClients)
	always := 0.0
	if len(caller.AllClients(n)) == 0 { // nobody says in what a client is blocked that always is
		always, _ = blocked.Min()
	}
	sum := 0.0
	for _, p := range n.Events(recording.SourceServer, recording.KindPoll) {
		v, known := blocked.At(p.TimeNs + p.DurationNs)
		if !known {
			continue
		}
		w.Polls++
		if v > always {
			sum += v - always
			w.Blocked++
		}
	}
	if w.Blocked == 0 {
		return w, false
	}
	w.AllNs = sum / float64(w.Polls) * n.Seconds() * 1e9
	w.MeanNs = w.AllNs / w.Calls
	return w, true
}

// Replica is what a master says of one of its replicas.
type Replica struct {
	// Port is where the replica listens, 0 where it did not say.
	Port int
	// MaxLagSeconds is the longest time since its last acknowledgement.
	MaxLagSeconds float64
	// MaxBehindBytes is by how much it had acknowledged less than the master wrote, at most.
	MaxBehindBytes float64
}

// Replicas are those that the node as a master had during the watch, by INFO.
func Replicas(n *facts.Node) (out []Replica) {
	for k := 0; ; k++ {
		lag, ok := n.Series(series.ReplicaLag(k)).Max()
		if !ok {
			return out
		}
		port, _ := n.Series(series.ReplicaPort(k)).Last()
		r := Replica{Port: int(port), MaxLagSeconds: lag}
		acked := n.Series(series.ReplicaOffset(k))
		for _, written := range n.Series(series.MasterReplOffset) {
			if v, known := acked.At(written.TimeNs); known {
				r.MaxBehindBytes = max(r.MaxBehindBytes, written.Value-v)
			}
		}
		out = append(out, r)
	}
}
