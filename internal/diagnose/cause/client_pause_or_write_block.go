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
		T0: "cmdstat_client|pause (7.0), paused_reason (valkey 8.1), clients blocked in commands that never block, " +
			"NOREPLICAS errors",
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
	stall := n.IdleServerWait()
	if n.MaxclientsRefusals() > 0 {
		stall = facts.IdleServerWait{} // calls without a connection wait for that
	}
	share := finding(n, stall.Claim, 0).ExcessShare
	kept := n.DelayedReplies()
	writes := kept.Matters() && p.Reported() || p.MaxBlocked > 0 && (p.Reported() || p.BlockedClient != "" ||
		!p.ClientsMayBlock &&
			n.AllClientsListed())
	stalled := stall.Matters() && (p.Reported() || share >= mostOfExcess)
	unseen := stall.AllBlocked && !n.PacketLoss().SeenOnPort && (stall.LoopIdle() || !stall.HostWatched &&
		stall.LoggedShare < 0.5 &&
		p.ClientCommands >= minStalls)
	switch {
	case writes && (p.BlockedClient != "" || p.Actions == "write" || !stalled):
		return pauseOfWrites(n, p)
	case stalled && (p.Reported() || unseen):
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
func pauseOfAll(n *facts.Node, p facts.Pause, w facts.IdleServerWait) *Finding {
	f := finding(n, w.Claim, 0.5)
	f.Title = "CLIENT PAUSE: the server withholds all replies, and then gives them all at once"
	switch {
	case p.Reported() && w.LoopIdle():
		f.Confidence = 0.97
	case p.Reported():
		f.Confidence = 0.9
	case w.LoopIdle() && w.AllBlocked:
		f.Confidence = 0.85
	}
	f.supportPause(p)
	f.supportDelayedReplies(n.DelayedReplies())
	f.support(n.CallSource(), fmt.Sprintf("%d of %d slow calls got no reply for up to %s, and nothing of the host "+
		"held "+
		"up the server", w.Claim.Calls, len(n.Ledger.Slow), facts.Dur(w.Claim.MaxNs)), float64(w.Claim.Calls), "calls")
	if w.AllBlocked {
		f.support(recording.SourceProbe, "while they waited no call of any connection came through; then all did "+
			"within milliseconds", 0, "")
	}
	if w.HostWatched && w.LoopIdle() {
		f.support(recording.SourceHost, fmt.Sprintf("the main thread slept for %.0f %% of that time, and woke up "+
			"%.0f times per second: the event loop turned, and had nothing that it may do", w.SleepShare*100,
			w.WakeupsPerSecond),
			w.SleepShare, "of the time")
	} else if w.HostWatched {
		f.doubt(recording.SourceHost, fmt.Sprintf("the main thread slept only %.0f %% of that time", w.SleepShare*100),
			w.SleepShare, "of the time")
	}
	if !p.Reported() && !facts.ServerAtLeast(n, 7, 0) {
		f.doubt(recording.SourceServer, "this version does not count CLIENT PAUSE by itself (7.0 and later do)", 0, "")
	}
	f.Fix = pauseFix(n, p)
	f.See = []string{"https://redis.io/docs/latest/commands/client-pause/"}
	return f
}

// pauseOfWrites: readers, and with them the probe, notice nothing.
func pauseOfWrites(n *facts.Node, p facts.Pause) *Finding {
	kept := n.DelayedReplies()
	f := finding(n, kept.Claim, 0.75)
	f.ExcessShare = max(p.BlockedShare, 0.3, f.ExcessShare)
	f.Title = "Writes are paused (CLIENT PAUSE … WRITE or a failover): writers wait, readers notice nothing"
	switch {
	case p.BlockedClient != "" || p.Reported() && (!p.ClientsMayBlock || kept.Matters()):
		f.Confidence = 0.95
	case p.ClientsMayBlock && p.BlockedClient == "" && p.Reason == "":
		f.Confidence = 0.6
		f.doubt(recording.SourceServer, "clients also wait in commands that block of themselves (BLPOP, XREAD …): "+
			"how many waited for the pause is not known", 0, "")
	}
	f.supportPause(p)
	f.supportDelayedReplies(kept)
	f.support(recording.SourceServer, fmt.Sprintf("up to %.0f clients were blocked, in %.0f %% of the looks "+
		"(blocked_clients)", p.MaxBlocked, p.BlockedShare*100), p.MaxBlocked, "clients")
	if p.BlockedClient != "" {
		f.support(recording.SourceServer, fmt.Sprintf("CLIENT LIST: %s is blocked (flag b) in %s, a command that "+
			"never blocks by itself", p.BlockedClient, p.BlockedCommand), 1, "clients")
	}
	if !p.ClientsMayBlock {
		f.support(recording.SourceServer, "no client waits in a command that blocks of itself (BLPOP, XREAD, WAIT …)",
			0, "clients")
	}
	f.Fix = pauseFix(n, p)
	f.See = []string{"https://redis.io/docs/latest/commands/client-pause/"}
	return f
}

func (f *Finding) supportPause(p facts.Pause) {
	if p.PauseCalls > 0 {
		f.support(recording.SourceServer, fmt.Sprintf("CLIENT PAUSE was called %.0f times in the watch (commandstats)",
			p.PauseCalls), p.PauseCalls, "calls")
	}
	if p.PauseCalls == 0 && p.ClientCommands >= minStalls {
		f.support(recording.SourceServer, fmt.Sprintf("somebody sent about %.0f CLIENT commands (commandstats, "+
			"slowpath's own not counted)", p.ClientCommands), p.ClientCommands, "calls")
	}
	if p.Reason != "" {
		f.support(recording.SourceServer, fmt.Sprintf("INFO: paused_reason %s, paused_actions %s", p.Reason, p.Actions),
			1, "")
	}
	if p.Failover {
		f.support(recording.SourceServer, "a FAILOVER is under way (master_failover_state)", 1, "")
	}
}

func pauseFix(n *facts.Node, p facts.Pause) []string {
	fix := []string{"Find who sends CLIENT PAUSE: a failover script, an upgrade or migration tool, an operator; ACL " +
		"LOG and the deployment's logs say more than the server"}
	if facts.ServerAtLeast(n, 6, 2) {
		fix = append(fix, "To end it now: CLIENT UNPAUSE; where a pause is needed, CLIENT PAUSE milliseconds WRITE "+
			"lets readers go on")
	} else {
		fix = append(fix, "To end it now: CLIENT PAUSE 0; redis >= 6.2 has CLIENT UNPAUSE, and a pause of writes only")
	}
	if facts.ServerAtLeast(n, 6, 0) {
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
		f.support(recording.SourceServer, fmt.Sprintf("%.0f writes were answered NOREPLICAS (errorstat), %.0f per "+
			"second", refused, refused/n.Seconds()), refused, "errors")
	}
	if want > 0 {
		f.support(recording.SourceServer, fmt.Sprintf("min-replicas-to-write is %d, and %.0f replicas are in step "+
			"(lag at most min-replicas-max-lag)", want, good), good, "replicas")
	}
	if refused == 0 && facts.ServerAtLeast(n, 6, 2) {
		f.doubt(recording.SourceServer, "no write was refused during the watch", 0, "errors")
		f.Confidence = 0.5
	}
	f.Fix = []string{
		"Bring the replicas back: INFO replication says who is connected and how far behind; " +
			"repl-backlog-size and the network between them",
		fmt.Sprintf("If writes matter more than copies: CONFIG SET min-replicas-to-write 0 (it is %d)", want),
	}
	if !facts.ServerAtLeast(n, 5, 0) {
		f.Fix[1] = "If writes matter more than copies: CONFIG SET min-slaves-to-write 0"
	}
	f.See = []string{"https://redis.io/docs/latest/operate/oss_and_stack/management/replication/#allow-writes-only-with-n-attached-replicas"}
	return f
}

// supportDelayedReplies names the commands whose replies the server delayed.
func (f *Finding) supportDelayedReplies(d facts.DelayedReplies) {
	if d.Calls == 0 {
		return
	}
	ops := facts.KeysByValue(d.MaxNsByOp)
	f.support(recording.SourceTap, fmt.Sprintf("%d calls of its clients were read by the server, which then slept "+
		"before it answered, up to %s: %s, which never block of themselves", d.Calls, facts.Dur(d.MaxNs),
		strings.Join(ops[:min(len(ops), 4)], ", ")), float64(d.Calls), "calls")
}
