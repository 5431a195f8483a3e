package facts

import (
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/recording"
)

// Pause is what a server says of holding its clients back.
type Pause struct {
	PauseCalls float64 // CLIENT PAUSE calls that commandstats counted (7.0 and later)
	// CLIENT commands of others where subcommands are not counted by themselves (before 7.0)
	ClientCommands  float64
	Reason, Actions string // of INFO, valkey 8.1 and later
	Failover        bool
	MaxBlocked      float64 // most clients that were blocked beyond those that always are
	BlockedShare    float64 // part of the looks at which some were
	ClientsMayBlock bool    // clients wait in commands that block of themselves
	BlockedClient   string  // a client that is blocked in a command that never blocks
	BlockedCommand  string
}

// Certain: the server itself says that there was a pause.
func (p Pause) Reported() bool { return p.PauseCalls > 0 || p.Reason != "" }

// mayBlock are the commands in which a client waits of its own will.
var blockingCommands = WordSet("BLPOP BRPOP BRPOPLPUSH BLMOVE BLMPOP BZPOPMIN BZPOPMAX BZMPOP XREAD XREADGROUP WAIT " +
	"WAITAOF")

func (n *Node) Pause() Pause {
	p := Pause{PauseCalls: n.Growth("cmdstat_client|pause.calls"), ClientsMayBlock: n.blocksByChoice()}
	for _, text := range n.InfoTexts {
		if r := text.PausedReason; r != "" && r != "none" {
			p.Reason, p.Actions = r, text.PausedActions
		}
		if st := text.FailoverState; st != "" && st != "no-failover" {
			p.Failover = true
		}
	}
	for _, c := range n.Clients() {
		name, _, _ := strings.Cut(strings.ToUpper(strings.ReplaceAll(c.Cmd, "|", " ")), " ")
		switch {
		case !strings.Contains(c.Flags, "b") || name == "" || name == "NULL" || scriptCommands[name]:
		case blockingCommands[name]:
			p.ClientsMayBlock = true
		case account.ConstantTime(name) || storingCommands[name]:
			p.BlockedClient, p.BlockedCommand = c.Addr, name
		default:
			p.ClientsMayBlock = true // a module's command may wait for its threads
		}
	}
	p.ClientCommands = n.clientCommands()
	p.MaxBlocked, p.BlockedShare = n.blockedMore(p.ClientsMayBlock)
	if p.BlockedClient != "" {
		p.MaxBlocked = max(p.MaxBlocked, 1)
	}
	return p
}

// DelayedReplies is the time in which the server had read calls of its users, and slept before it answered them: calls
// of commands that never block by themselves, on connections where no command before them does.
type DelayedReplies struct {
	Claim
	// MaxNsByOp is the longest delay in nanoseconds by command.
	MaxNsByOp map[string]int64
}

// KeptBack claims the time in which the server had read calls of its users, and slept before it answered: of commands
// that never block of themselves, on connections where no command before them does. By command it tells how long they
// waited.
func (n *Node) DelayedReplies() DelayedReplies {
	byOp, behind := map[string]int64{}, map[string][]Span{}
	for _, e := range n.Events(recording.SourceTap, recording.KindWaiter) {
		conn := recording.DetailOf[recording.WaiterDetail](e).Client
		behind[conn] = append(behind[conn], Span{e.TimeNs, e.TimeNs + e.DurationNs})
	}
	cl := n.ClaimOf(func(a account.Account) int64 {
		name, _, _ := strings.Cut(a.Call.Op, " ")
		if a.Call.Source != recording.SourceTap || a.Call.Side == recording.Client || blockingCommands[name] ||
			overlap(behind[a.Call.Conn], Span{a.Call.IntendedNs, a.Call.EndNs}) > 0 || !account.ConstantTime(name) &&
			!storingCommands[name] {
			return 0
		}
		var ns int64
		read := false
		for _, s := range a.Segments {
			read = read || s.Actor == account.Server && s.State == account.Exec
			if read && (s.State == account.Withheld || s.State == account.Unexplained) &&
				s.Ns() >= minIdleServerWaitNs {
				ns += s.Ns()
			}
		}
		if ns > 0 {
			byOp[a.Call.Op] = max(byOp[a.Call.Op], ns)
		}
		return ns
	})
	return DelayedReplies{cl, byOp}
}

// Listed reports whether CLIENT LIST was seen with all its lines (the snapshot holds 2 000): who is not in it is not
// there.
func (n *Node) AllClientsListed() bool {
	most, ok := n.Info("connected_clients").Max()
	return len(n.Clients()) > 0 && (!ok || most <= 2000)
}

// clientCommands counts the CLIENT commands that were not slowpath's own: a CLIENT SETNAME for each of its connections,
// and CLIENT LIST.
func (n *Node) clientCommands() float64 {
	calls := n.Info("cmdstat_client.calls")
	if len(calls) < 2 {
		return 0
	}
	own := n.ProbeCalls(calls[0].TimeNs, calls[len(calls)-1].TimeNs).Fresh
	for _, s := range n.Rec.Snapshots {
		if s.Source == recording.SourceServer && s.Subject == n.Address && s.Name == "clients" &&
			s.TimeNs > calls[0].TimeNs {
			own++
		}
	}
	return max(calls.Growth()-own, 0)
}

// blockedMore is how many more clients were blocked at most than at least, and at which part of the looks. A sample is
// written when it changes, so every poll has a value in force.
func (n *Node) blockedMore(byChoice bool) (most, share float64) {
	blocked := n.Info("blocked_clients")
	least, ok := blocked.Min()
	if !ok {
		return 0, 0
	}
	if !byChoice {
		least = 0 // those that are blocked at every look did not choose to be
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
	if len(polls) == 0 {
		m, _ := blocked.Max()
		return m - least, 0.5
	}
	return most, high / float64(len(polls))
}

// blocksByChoice reports whether a command in which clients wait of their own will was ever done. One that still waits
// is not counted by commandstats, only CLIENT LIST shows it.
func (n *Node) blocksByChoice() bool {
	for command := range blockingCommands {
		if calls, ok := n.Info("cmdstat_" + strings.ToLower(command) + ".calls").Last(); ok && calls > 0 {
			return true
		}
	}
	return false
}

// Withheld is time that calls waited for a server that was not seen busy, stopped or waiting for a CPU.
type IdleServerWait struct {
	Claim
	AllBlocked       bool    // nothing came through meanwhile
	HostWatched      bool    // the main thread was watched
	SleepShare       float64 // part of the time around these calls that it slept
	WakeupsPerSecond float64 // per second
	// part of these stretches for which the server has a command in its records: DEBUG SLEEP sleeps, too
	LoggedShare float64
}

// Asleep: its event loop turned and had nothing to do.
func (w IdleServerWait) LoopIdle() bool {
	return w.HostWatched && w.SleepShare >= 0.6 && w.WakeupsPerSecond >= 2 && w.LoggedShare < 0.5
}

// minWithheld is the shortest wait that is not merely a hiccup.
const minIdleServerWaitNs = int64(20e6)

// Withheld looks at the slow calls that nothing explains.
func (n *Node) IdleServerWait() IdleServerWait {
	w := IdleServerWait{HostWatched: n.HostWatched()}
	open := func(a account.Account, s account.Segment) bool {
		return IsUnexplainedWait(s) && (s.Actor != account.Server || s.State == account.Withheld) &&
			a.ExcessNs >= minIdleServerWaitNs
	}
	w.Claim = n.Claim(open)
	if w.Claim.Ns == 0 {
		return w
	}
	stalls := n.stalls()
	w.AllBlocked = n.nothingPassed(stalls)
	w.LoggedShare = n.loggedShare(stalls)
	if w.HostWatched {
		w.SleepShare, w.WakeupsPerSecond = n.sleep(stalls)
	}
	return w
}

// loggedShare is how much of some stretches the server's records of long commands could fill.
func (n *Node) loggedShare(stalls []Span) float64 {
	var all, logged int64
	for _, s := range stalls {
		all += s.ToNs - s.FromNs
	}
	for _, s := range n.Ledger.Suspects {
		if s.Node == n.Address && s.Kind == account.KindCommand && !s.Merged && s.DurationNs >= minIdleServerWaitNs {
			logged += s.DurationNs * int64(max(s.Count, 1))
		}
	}
	return float64(logged) / float64(max(all, 1))
}

// Span is a stretch of time.
type Span struct{ FromNs, ToNs int64 }

// stalls joins the slow calls into stretches in which at least one waited.
func (n *Node) stalls() []Span {
	var out []Span
	for _, a := range n.Ledger.Slow { // ordered by their begin
		if a.Call.Node != n.Address || a.Call.Source != recording.SourceProbe || a.ExcessNs < minIdleServerWaitNs {
			continue
		}
		if k := len(out) - 1; k >= 0 && a.Call.IntendedNs <= out[k].ToNs {
			out[k].ToNs = max(out[k].ToNs, a.Call.EndNs)
			continue
		}
		out = append(out, Span{a.Call.IntendedNs, a.Call.EndNs})
	}
	return out
}

// nothingPassed reports whether no call that began in a stall came back before its end, but for the last moment: a
// connection that lost a segment waits alone.
func (n *Node) nothingPassed(stalls []Span) bool {
	others := 0
	for _, c := range n.Rec.Calls {
		if c.Node != n.Address || c.Source != recording.SourceProbe {
			continue
		}
		for _, s := range stalls {
			margin := max(int64(10e6), (s.ToNs-s.FromNs)/10)
			if c.StartNs <= s.FromNs+margin/2 || c.StartNs >= s.ToNs-margin {
				continue
			}
			if c.EndNs < s.ToNs-margin && c.Error == "" {
				return false
			}
			if c.Conn == "fresh" {
				others++
			}
		}
	}
	for _, p := range n.Events(recording.SourceServer, recording.KindPoll) {
		for _, s := range stalls {
			margin := max(int64(10e6), (s.ToNs-s.FromNs)/10)
			if p.TimeNs > s.FromNs+margin/2 && p.TimeNs < s.ToNs-margin {
				if p.TimeNs+p.DurationNs < s.ToNs-margin {
					return false
				}
				others++
			}
		}
	}
	return others > 0
}

// sleep is the part of the stalls that the main thread slept, by the counters around them, and how often it woke up per
// second of the whole watch.
func (n *Node) sleep(stalls []Span) (slept, wakeups float64) {
	run, delay := n.Host("main.run_ns"), n.Host("main.delay_ns")
	var all, busy float64
	for i := 1; i < len(run); i++ {
		from, to := run[i-1].TimeNs, run[i].TimeNs
		within := overlap(stalls, Span{from, to})
		if within == 0 || to <= from {
			continue
		}
		d0, _ := delay.At(from)
		d1, _ := delay.At(to)
		// What it ran outside of the stalls is not known to be outside: this bounds the sleep from below.
		all += float64(within)
		busy += min(float64(within), run[i].Value-run[i-1].Value+d1-d0)
	}
	if all == 0 {
		return 0, 0
	}
	return 1 - busy/all, Rate(n.Host("main.voluntary_switches"))
}

func overlap(stalls []Span, with Span) int64 {
	var ns int64
	for _, s := range stalls {
		ns += max(0, min(s.ToNs, with.ToNs)-max(s.FromNs, with.FromNs))
	}
	return ns
}
