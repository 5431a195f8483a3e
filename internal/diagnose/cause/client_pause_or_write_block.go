package cause

import (
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/diagnose/facts/nodes"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// clientPauseOrWriteBlock: the server is fine, but was told to serve nobody, or no writer: CLIENT PAUSE, FAILOVER, a
// slot migration, or min-replicas-to-write without enough replicas.
var clientPauseOrWriteBlock = Cause{
	ID:      "client-pause-or-write-block",
	Class:   ServerStall,
	See:     []string{pausePage, minReplicasPage},
	Changes: []string{"CLIENT PAUSE", "FAILOVER", "min-replicas-*"},
	Explain: explainPause,
}

const (
	pausePage       = "https://redis.io/docs/latest/commands/client-pause/"
	minReplicasPage = "https://redis.io/docs/latest/operate/oss_and_stack/management/replication/" +
		"#allow-writes-only-with-n-attached-replicas"
)

func explainPause(n *facts.Node) *Finding {
	if f := explainNoReplicas(n); f != nil {
		return f
	}
	p := mainthread.PauseOf(n)
	stall := mainthread.IdleServerWaitOf(n)
	if nodes.MaxclientsRefusals(n) > 0 {
		stall = mainthread.IdleServerWait{} // calls that have no connection wait for one
	}
	kept := mainthread.DelayedRepliesOf(n)
	blocked := p.Reported() || p.BlockedClient != "" || !p.ClientsMayBlock && caller.AllClientsListed(n)
	writes := kept.Matters() && p.Reported() || p.MaxBlocked > 0 && blocked
	// A pause holds up everything while it lasts; what it does not explain has another cause.
	most := float64(stall.Claim.Ns) >= degree.Most*float64(n.Ledger.ExcessNs)
	told := p.ClientCommands >= degree.Several // by somebody, maybe to pause
	unseen := stall.AllBlocked && !hosts.PacketLossOf(n).SeenOnPort &&
		(stall.LoopIdle() || !stall.HostWatched && stall.LoggedShare < degree.Most && told)
	// a server that counts no CLIENT PAUSE, and was seen to read calls and sleep
	unseen = unseen || kept.Matters() && told
	// one that counts it, and has counted none since it began, was not told to pause
	unseen = unseen && !p.Never
	all := stall.Matters() && (p.Reported() || most && unseen)
	switch {
	case writes && (!all || p.BlockedClient != "" || p.Actions == "write"):
		return pauseOfWrites(n, p)
	case all:
		return pauseOfAll(n, p, stall)
	}
	return nil
}

// pauseOfAll: replies were withheld from all clients.
func pauseOfAll(n *facts.Node, p mainthread.Pause, w mainthread.IdleServerWait) *Finding {
	f := finding(n, w.Claim)
	f.Title = "CLIENT PAUSE: the server withholds all replies, then sends them all at once"
	if !p.Reported() && !(w.LoopIdle() && w.AllBlocked) && !mainthread.DelayedRepliesOf(n).Matters() {
		f.weaken(1)
	}
	f.supportPause(p)
	f.supportDelayedReplies(mainthread.DelayedRepliesOf(n))
	f.support(n.CallSource(), float64(w.Claim.Calls), "calls",
		"%s got no reply for up to %s, and nothing on the host held up the server",
		ofSlow(w.Claim.Calls, n), format.Brief(w.Claim.MaxNs))
	if w.AllBlocked {
		f.support(recording.SourceProbe, 0, "",
			"while they waited no call on any connection got through; then all did within milliseconds")
	}
	if w.HostWatched && w.LoopIdle() {
		f.support(recording.SourceHost, w.SleepShare, "of the time",
			"the main thread slept for %.0f %% of that time, and woke up %.0f times per "+
				"second: the event loop ran, but had nothing to do", w.SleepShare*100, w.WakeupsPerSecond)
	} else if w.HostWatched {
		f.doubt(recording.SourceHost, w.SleepShare, "of the time",
			"the main thread slept only %.0f %% of that time", w.SleepShare*100)
	}
	if !p.Reported() && !facts.ServerAtLeast(n, 7, 0) {
		f.doubt(recording.SourceServer, 0, "", "this version has no count of CLIENT PAUSE (7.0 and later have)")
	}
	f.FixSteps = pauseFix(n, p)
	f.See = []string{pausePage}
	return f
}

// pauseOfWrites: readers, and so the probe, notice nothing.
func pauseOfWrites(n *facts.Node, p mainthread.Pause) *Finding {
	kept := mainthread.DelayedRepliesOf(n)
	f := finding(n, kept.Claim)
	if !kept.Matters() { // who waited was not seen, but writers get nothing until the pause ends
		f.loseBeside(n, facts.LostWaiting, max(p.BlockedShare, degree.Part), facts.HealthyMaxNs)
	}
	f.Title = "Writes are paused (CLIENT PAUSE … WRITE or a failover): writers wait, readers notice nothing"
	if p.ClientsMayBlock && p.BlockedClient == "" && p.Reason == "" && !(p.Reported() && kept.Matters()) {
		f.doubt(recording.SourceServer, 0, "",
			"clients also wait in blocking commands (BLPOP, XREAD …): how many waited for the pause is not known")
	}
	f.supportPause(p)
	f.supportDelayedReplies(kept)
	f.support(recording.SourceServer, p.MaxBlocked, "clients",
		"up to %s blocked, in %.0f %% of the polls (blocked_clients)", counted(p.MaxBlocked, "client"),
		p.BlockedShare*100)
	if p.BlockedClient != "" {
		f.support(recording.SourceServer, 1, "clients",
			"CLIENT LIST: %s is blocked (flag b) in %s, a command that never blocks by itself", p.BlockedClient,
			p.BlockedCommand)
	}
	if !p.ClientsMayBlock {
		f.support(recording.SourceServer, 0, "clients", "no client waits in a blocking command (BLPOP, XREAD, WAIT …)")
	}
	f.FixSteps = pauseFix(n, p)
	f.See = []string{pausePage}
	return f
}

func (f *Finding) supportPause(p mainthread.Pause) {
	switch {
	case p.PauseCalls > 0:
		f.support(recording.SourceServer, p.PauseCalls, "calls",
			"CLIENT PAUSE was called %s during the watch (commandstats)", facts.TimesText(int(p.PauseCalls)))
	case p.ClientCommands >= degree.Several:
		f.support(recording.SourceServer, p.ClientCommands, "calls",
			"some client sent about %.0f CLIENT commands (commandstats, without slowpath's own)", p.ClientCommands)
	}
	if p.Reason != "" {
		f.support(recording.SourceServer, 1, "", "INFO: paused_reason %s, paused_actions %s", p.Reason, p.Actions)
	}
	if p.Failover {
		f.support(recording.SourceServer, 1, "", "a FAILOVER is in progress (master_failover_state)")
	}
}

// pauseFix ends a pause, and keeps pauses that come again and again from coming.
func pauseFix(n *facts.Node, p mainthread.Pause) (fix []remedy.Step) {
	if p.Failover {
		fix = append(fix, remedy.Step{
			ID: "abort-failover", Kind: remedy.Command, Command: remedy.CLI(n, "FAILOVER", "ABORT"),
			Text: "End the failover that holds the writers", Risk: "this server stays the master",
		})
	}
	pause := account.Suspect{Kind: account.KindCommand, Command: "CLIENT PAUSE"}
	if forbid, ok := remedy.Forbid(n, pause.Command, caller.UserOf(n, pause)); ok {
		forbid.Or, forbid.Since = false, "Redis 7.0"
		fix = append(fix, forbid)
	}
	who := "Find who sends CLIENT PAUSE: a failover script, an upgrade or migration tool, an operator"
	if by := caller.WhoSent(n, pause); by.Known() {
		who = "Let " + format.Name(by.CallerText()) + " send no CLIENT PAUSE"
	}
	if facts.ServerAtLeast(n, 6, 2) {
		who += ". Where a pause is needed, CLIENT PAUSE with WRITE lets reads go on"
	}
	end := remedy.Step{
		ID: "end-pause", Kind: remedy.Command, Text: "End the pause that is under way",
		Command: remedy.CLI(n, "CLIENT", "PAUSE", "0"), Risk: "whoever asked for it does not know",
	}
	if facts.ServerAtLeast(n, 6, 2) {
		end.Command, end.Since = remedy.CLI(n, "CLIENT", "UNPAUSE"), "Redis 6.2"
	}
	return append(fix, end, change("stop-pauses", "%s", who))
}

// explainNoReplicas: min-replicas-to-write wants more replicas than there are, so each write is refused.
func explainNoReplicas(n *facts.Node) *Finding {
	r := nodes.RefusedWith(n, "NOREPLICAS")
	refused := r.Users
	want := max(n.ConfigInt("min-replicas-to-write"), n.ConfigInt("min-slaves-to-write"))
	good, known := n.Series(series.MinSlavesGoodSlaves).Min()
	if refused == 0 && !(want > 0 && known && int(good) < want) {
		return nil
	}
	f := &Finding{Of: n.Ledger.Calls()}
	f.Title = "Writes are refused: fewer replicas are in sync than min-replicas-to-write wants"
	if refused == 0 {
		f.loseBeside(n, facts.LostWaiting, 1, facts.HealthyMaxNs) // writes would be refused; nobody was seen to write
	} else {
		f.Samples = int(refused)
		f.loseRefused(n, refused)
		source, how := refusedSource(r)
		f.support(source, refused, "errors", "%s got NOREPLICAS (%s), %.0f per second", counted(refused, "write"), how,
			refused/n.Seconds())
	}
	if want > 0 {
		f.support(recording.SourceServer, good, "replicas",
			"%s in sync (lag at most min-replicas-max-lag); min-replicas-to-write is %d", counted(good, "replica"),
			want)
	}
	if refused == 0 && facts.ServerAtLeast(n, 6, 2) {
		f.doubt(recording.SourceServer, 0, "errors", "no write was refused during the watch")
		f.weaken(1)
	}
	f.FixSteps = noReplicasFix(n)
	f.See = []string{minReplicasPage}
	return f
}

func noReplicasFix(n *facts.Node) []remedy.Step {
	parameter := "min-replicas-to-write"
	if !facts.ServerAtLeast(n, 5, 0) {
		parameter = "min-slaves-to-write"
	}
	return []remedy.Step{
		change("bring-replicas-back", "Bring the replicas back: INFO replication shows which are connected and how "+
			"far behind they are"),
		orElse(remedy.ConfigSet(n, "write-without-replicas", parameter, "0",
			"Accept writes without replicas, where they matter more than copies").
			Risking("a crash of this server loses writes that no replica has")),
	}
}

// supportDelayedReplies names the commands whose replies the server delayed.
func (f *Finding) supportDelayedReplies(d mainthread.DelayedReplies) {
	if d.Calls == 0 {
		return
	}
	ops := facts.KeysByValue(d.MaxNsByOp)
	ops = ops[:min(len(ops), degree.Listed)]
	f.support(recording.SourceTap, float64(d.Calls), "calls",
		"the server read %s of its clients, then slept before it answered, "+
			"up to %s: %s, which never block by themselves", counted(d.Calls, "call"), format.Brief(d.MaxNs),
		strings.Join(ops, ", "))
}
