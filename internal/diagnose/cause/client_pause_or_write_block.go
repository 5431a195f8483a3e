package cause

import (
	"fmt"
	"strings"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
)

// clientPauseOrWriteBlock: the server is well and serves nobody, or no writer, because it was told to: CLIENT PAUSE,
// FAILOVER, a slot migration, or min-replicas-to-write without enough replicas.
var clientPauseOrWriteBlock = Cause{
	ID:    "client-pause-or-write-block",
	Title: "The server holds its clients back on command: CLIENT PAUSE, a failover, or a block of writes",
	Layer: "server",
	Class: ServerStall,
	Needs: Needs{
		T0: "cmdstat_client|pause (7.0), paused_reason (valkey 8.1), clients blocked in " +
			"commands that never block, NOREPLICAS errors",
		T1: "the main thread asleep, its event loop turning, while no call gets a reply",
		T2: "commands that never block were read by the server, which then slept before it answered: which, and whose",
	},
	Explain: explainPause,
}

func explainPause(n *facts.Node) *Finding {
	if f := explainNoReplicas(n); f != nil {
		return f
	}
	p := n.Pause()
	stall := n.Withheld()
	if n.Refusals() > 0 {
		stall = facts.Withheld{} // calls without a connection wait for that
	}
	share := finding(n, stall.Claim, 0).ExcessShare
	kept, _ := n.KeptBack()
	writes := kept.Matters() && p.Certain() || p.Writers > 0 && (p.Certain() || p.Example != "" || !p.ByChoice &&
		n.Listed())
	stalled := stall.Matters() && (p.Certain() || share >= mostOfExcess)
	unseen := stall.Together && !n.PacketLoss().OnPort && (stall.Asleep() || !stall.Hosted && stall.Logged < 0.5 &&
		p.Unnamed >= minStalls)
	switch {
	case writes && (p.Example != "" || p.Actions == "write" || !stalled):
		return pauseOfWrites(n, p)
	case stalled && (p.Certain() || unseen):
		return pauseOfAll(n, p, stall)
	case writes:
		return pauseOfWrites(n, p)
	}
	return nil
}

// minStalls: one CLIENT command of another connection proves nothing.
const minStalls = 2

// mostOfExcess: a pause holds up everything while it lasts, so what it does not explain has another reason.
const mostOfExcess = 0.5

// pauseOfAll: replies were withheld from everybody.
func pauseOfAll(n *facts.Node, p facts.Pause, w facts.Withheld) *Finding {
	f := finding(n, w.Claim, 0.5)
	f.Title = "CLIENT PAUSE: the server withholds all replies, and then gives them all at once"
	switch {
	case p.Certain() && w.Asleep():
		f.Confidence = 0.97
	case p.Certain():
		f.Confidence = 0.9
	case w.Asleep() && w.Together:
		f.Confidence = 0.85
	}
	f.supportPause(p)
	f.supportKeptBack(n.KeptBack())
	f.support(n.CallSource(), float64(w.Claim.Calls), "calls",
		"%d of %d slow calls got no reply for up to %s, and nothing of the host held up the server", w.Claim.Calls,
		len(n.Ledger.Slow), facts.Dur(w.Claim.MaxNs))
	if w.Together {
		f.support(recording.SourceProbe, 0, "",
			"while they waited no call of any connection came through; then all did within milliseconds")
	}
	if w.Hosted && w.Asleep() {
		f.support(recording.SourceHost, w.Slept, "of the time",
			"the main thread slept for %.0f %% of that time, and woke up %.0f times per second: the "+
				"event loop turned, and had nothing that it may do", w.Slept*100, w.Wakeups)
	} else if w.Hosted {
		f.doubt(recording.SourceHost, w.Slept, "of the time",
			"the main thread slept only %.0f %% of that time", w.Slept*100)
	}
	if !p.Certain() && !facts.Since(n, 7, 0) {
		f.doubt(recording.SourceServer, 0, "", "this version does not count CLIENT PAUSE by itself (7.0 and later do)")
	}
	f.Fix = pauseFix(n, p)
	f.See = []string{"https://redis.io/docs/latest/commands/client-pause/"}
	return f
}

// pauseOfWrites: readers, and with them the probe, notice nothing.
func pauseOfWrites(n *facts.Node, p facts.Pause) *Finding {
	kept, byOp := n.KeptBack()
	f := finding(n, kept, 0.75)
	f.ExcessShare = max(p.Share, 0.3, f.ExcessShare)
	f.Title = "Writes are paused (CLIENT PAUSE … WRITE or a failover): writers wait, readers notice nothing"
	switch {
	case p.Example != "" || p.Certain() && (!p.ByChoice || kept.Matters()):
		f.Confidence = 0.95
	case p.ByChoice && p.Example == "" && p.Reason == "":
		f.Confidence = 0.6
		f.doubt(recording.SourceServer, 0, "",
			"clients also wait in commands that block of themselves (BLPOP, XREAD "+
				"…): how many waited for the pause is not known")
	}
	f.supportPause(p)
	f.supportKeptBack(kept, byOp)
	f.support(recording.SourceServer, p.Writers, "clients",
		"up to %.0f clients were blocked, in %.0f %% of the looks (blocked_clients)", p.Writers, p.Share*100)
	if p.Example != "" {
		f.support(recording.SourceServer, 1, "clients",
			"CLIENT LIST: %s is blocked (flag b) in %s, a command that never blocks by itself", p.Example, p.Command)
	}
	if !p.ByChoice {
		f.support(recording.SourceServer, 0, "clients",
			"no client waits in a command that blocks of itself (BLPOP, XREAD, WAIT …)")
	}
	f.Fix = pauseFix(n, p)
	f.See = []string{"https://redis.io/docs/latest/commands/client-pause/"}
	return f
}

func (f *Finding) supportPause(p facts.Pause) {
	if p.Counted > 0 {
		f.support(recording.SourceServer, p.Counted, "calls",
			"CLIENT PAUSE was called %.0f times in the watch (commandstats)", p.Counted)
	}
	if p.Counted == 0 && p.Unnamed >= minStalls {
		f.support(recording.SourceServer, p.Unnamed, "calls",
			"somebody sent about %.0f CLIENT commands (commandstats, slowpath's own not counted)", p.Unnamed)
	}
	if p.Reason != "" {
		f.support(recording.SourceServer, 1, "", "INFO: paused_reason %s, paused_actions %s", p.Reason, p.Actions)
	}
	if p.Failover {
		f.support(recording.SourceServer, 1, "", "a FAILOVER is under way (master_failover_state)")
	}
}

func pauseFix(n *facts.Node, p facts.Pause) []string {
	fix := []string{"Find who sends CLIENT PAUSE: a failover script, an upgrade or migration tool, an operator; ACL " +
		"LOG and the deployment's logs say more than the server"}
	if facts.Since(n, 6, 2) {
		fix = append(fix,
			"To end it now: CLIENT UNPAUSE; where a pause is needed, "+
				"CLIENT PAUSE milliseconds WRITE lets readers go on")
	} else {
		fix = append(fix, "To end it now: CLIENT PAUSE 0; redis >= 6.2 has CLIENT UNPAUSE, and a pause of writes only")
	}
	if facts.Since(n, 6, 0) {
		fix = append(fix, "To keep it from applications: ACL SETUSER app -client|pause")
	}
	if p.Failover {
		fix = append(fix, "FAILOVER ABORT ends the failover that holds the writers")
	}
	return fix
}

// explainNoReplicas: min-replicas-to-write wants replicas that are not there, and each write is refused.
func explainNoReplicas(n *facts.Node) *Finding {
	refused := n.Growth("errorstat_NOREPLICAS.count")
	want := max(n.ConfigInt("min-replicas-to-write"), n.ConfigInt("min-slaves-to-write"))
	good, known := n.Info("min_slaves_good_slaves").Min()
	if refused == 0 && !(want > 0 && known && int(good) < want) {
		return nil
	}
	f := &Finding{Of: len(n.Ledger.Slow), ExcessShare: 1, Confidence: 0.75}
	f.Title = "Writes are refused: fewer replicas are in step than min-replicas-to-write wants"
	if refused > 0 {
		f.Confidence = 0.97
		f.support(recording.SourceServer, refused, "errors",
			"%.0f writes were answered NOREPLICAS (errorstat), %.0f per second", refused, refused/n.Seconds())
	}
	if want > 0 {
		f.support(recording.SourceServer, good, "replicas",
			"min-replicas-to-write is %d, and %.0f replicas are in step (lag at most min-replicas-max-lag)", want, good)
	}
	if refused == 0 && facts.Since(n, 6, 2) {
		f.doubt(recording.SourceServer, 0, "errors", "no write was refused during the watch")
		f.Confidence = 0.5
	}
	f.Fix = []string{
		"Bring the replicas back: INFO replication says who is connected and how far behind; " +
			"repl-backlog-size and the network between them",
		fmt.Sprintf("If writes matter more than copies: CONFIG SET min-replicas-to-write 0 (it is %d)", want),
	}
	if !facts.Since(n, 5, 0) {
		f.Fix[1] = "If writes matter more than copies: CONFIG SET min-slaves-to-write 0"
	}
	f.See = []string{"https://redis.io/docs/latest/operate/oss_and_stack/management/replication/#allow-writes-only-with-n-attached-replicas"}
	return f
}

// supportKeptBack names the commands.
func (f *Finding) supportKeptBack(cl facts.Claim, byOp map[string]int64) {
	if cl.Calls == 0 {
		return
	}
	ops := facts.SortedByNs(byOp)
	f.support(recording.SourceTap, float64(cl.Calls), "calls",
		"%d calls of its clients were read by the server, which then slept before it answered, "+
			"up to %s: %s, which never block of themselves", cl.Calls, facts.Dur(cl.MaxNs),
		strings.Join(ops[:min(len(ops), 4)], ", "))
}
