package mainthread

import (
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// Pause is what a server says of holding its clients back.
type Pause struct {
	// PauseCalls is the number of CLIENT PAUSE calls in commandstats (7.0 and later).
	PauseCalls float64
	// Never says that the server counts CLIENT PAUSE, and has counted none since it began, or since CONFIG RESETSTAT.
	Never bool
	// ClientCommands is the number of CLIENT commands of others, where subcommands are not counted apart (before 7.0).
	ClientCommands float64
	// Reason and Actions are paused_reason and paused_actions of INFO (valkey 8.1 and later).
	Reason, Actions string
	// Failover says that a FAILOVER was under way.
	Failover bool
	// MaxBlocked is the largest number of clients that were blocked beyond those that always are.
	MaxBlocked float64
	// BlockedShare is the share of the polls at which some were.
	BlockedShare float64
	// ClientsMayBlock says that clients use commands that block by themselves (BLPOP, XREAD …).
	ClientsMayBlock bool
	// BlockedClient is the address of a client that is blocked in a command that never blocks by itself; empty where
	// there is none.
	BlockedClient string
	// BlockedCommand is that command.
	BlockedCommand string
}

// Reported reports whether the server itself says that there was a pause.
func (p Pause) Reported() bool { return p.PauseCalls > 0 || p.Reason != "" }

// PauseOf is read from commandstats, INFO and CLIENT LIST.
func PauseOf(n *facts.Node) Pause {
	p := Pause{PauseCalls: n.Growth(series.CommandCalls("client|pause")), ClientsMayBlock: blocksByChoice(n)}
	ever, _ := n.Series(series.CommandCalls("client|pause")).Max()
	counts := len(n.Series(series.CommandCalls("info"))) > 0 // slowpath itself sends INFO
	p.Never = counts && ever == 0 && facts.ServerAtLeast(n, 7, 0)
	for _, text := range n.InfoTexts {
		if r := text.PausedReason; r != "" && r != "none" {
			p.Reason, p.Actions = r, text.PausedActions
		}
		if st := text.FailoverState; st != "" && st != "no-failover" {
			p.Failover = true
		}
	}
	for _, c := range caller.Clients(n) {
		name, _, _ := strings.Cut(strings.ToUpper(strings.ReplaceAll(c.Cmd, "|", " ")), " ")
		switch {
		case !strings.Contains(c.Flags, "b") || name == "" || name == "NULL" || scriptCommands[name]:
		case facts.BlockingCommands[name]:
			p.ClientsMayBlock = true
		case account.ConstantTime(name) || storingCommands[name]:
			p.BlockedClient, p.BlockedCommand = c.Addr, name
		default:
			p.ClientsMayBlock = true // a module's command may wait for its threads
		}
	}
	p.ClientCommands = ClientCommands(n)
	p.MaxBlocked, p.BlockedShare = blockedMore(n, p.ClientsMayBlock)
	if p.BlockedClient != "" {
		p.MaxBlocked = max(p.MaxBlocked, 1)
	}
	return p
}

// ClientCommands counts the CLIENT commands that were not slowpath's own: a CLIENT SETNAME for each of its connections,
// and CLIENT LIST.
func ClientCommands(n *facts.Node) float64 {
	calls := n.Series(series.CommandCalls("client"))
	if len(calls) < 2 {
		return 0
	}
	own := connection.ProbeCallsOf(n, calls[0].TimeNs, calls[len(calls)-1].TimeNs).Fresh
	for _, s := range n.Rec.Snapshots {
		if s.Source == recording.SourceServer && s.Subject == n.Address && s.Name == "clients" &&
			s.TimeNs > calls[0].TimeNs {
			own++
		}
	}
	return max(calls.Growth()-own, 0)
}

// blockedMore is how many more clients were blocked at most than at least, and at which share of the polls. A sample is
// written when it changes, so that every poll has a value.
func blockedMore(n *facts.Node, byChoice bool) (most, share float64) {
	blocked := n.Series(series.BlockedClients)
	least, ok := blocked.Min()
	if !ok {
		return 0, 0
	}
	if !byChoice {
		least = 0 // no client blocks by itself: those that are blocked at every poll are paused, too
	}
	polls := n.Events(recording.SourceServer, recording.KindPoll)
	high := 0.0
	for _, p := range polls {
		v, _ := blocked.At(p.TimeNs + p.DurationNs)
		if v > least {
			high++
		}
		most = max(most, v-least)
	}
	return most, high / float64(max(len(polls), 1))
}

// blocksByChoice reports whether a command that blocks by itself was ever executed. One that still waits is not counted
// by commandstats, only CLIENT LIST shows it.
func blocksByChoice(n *facts.Node) bool {
	for command := range facts.BlockingCommands {
		if calls, ok := n.Series(series.CommandCalls(series.InCommandstats(command))).Last(); ok && calls > 0 {
			return true
		}
	}
	return false
}
