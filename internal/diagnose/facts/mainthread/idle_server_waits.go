package mainthread

import (
	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// IdleServerWait is the time that calls waited for a server that was not seen busy, stopped or in the run queue.
type IdleServerWait struct {
	facts.Claim
	// AllBlocked says that no call came through meanwhile.
	AllBlocked bool
	// HostWatched says that the main thread was watched.
	HostWatched bool
	// SleepShare is the part of the time around these calls that the main thread slept.
	SleepShare float64
	// WakeupsPerSecond is how often it woke up.
	WakeupsPerSecond float64
	// LoggedShare is the part of these stretches for which the server has a command in its records: DEBUG SLEEP sleeps
	// as well.
	LoggedShare float64
}

// LoopIdle reports whether the event loop ran, as serverCron makes it do at least once a second, and had nothing to do:
// commands in the server's records are not most of the wait.
func (w IdleServerWait) LoopIdle() bool {
	return w.HostWatched && w.SleepShare >= degree.Most && w.WakeupsPerSecond >= 1 && w.LoggedShare < degree.Most
}

// minIdleServerWaitNs is the shortest wait that counts: in shorter ones others may have had the CPU, unseen.
// Bound: guess, several turns of other threads on a CPU (3 ms each by default); run queues of many hosts would measure
// it.
const minIdleServerWaitNs = degree.Several * int64(degree.AtOnce)

// stallMargin is for how long at its begin and its end a stall may let calls pass.
func stallMargin(s facts.Span) int64 {
	return max(int64(degree.AtOnce), int64(degree.Part*float64(s.ToNs-s.FromNs)))
}

// IdleServerWaitOf is that of the slow calls which no source explains.
func IdleServerWaitOf(n *facts.Node) IdleServerWait {
	w := IdleServerWait{HostWatched: HostWatched(n)}
	held := connection.Held(n) // there the server waits for what a command of the same connection waits for
	w.Claim = n.ClaimOf(func(a account.Account) (times facts.StateTimes) {
		if a.ExcessNs < minIdleServerWaitNs {
			return nil
		}
		for _, s := range a.Segments {
			if facts.IsUnexplainedWait(s) && (s.Actor != account.Server || s.State == account.Withheld) {
				times.Add(s, s.Ns()-held[a.Call.Conn].OverlapNs(s.FromNs, s.ToNs))
			}
		}
		return times
	})
	if w.Claim.Ns == 0 {
		return w
	}
	stalls := stalls(n)
	w.AllBlocked = nothingPassed(n, stalls)
	w.LoggedShare = loggedShare(n, stalls)
	if w.HostWatched {
		w.SleepShare, w.WakeupsPerSecond = sleep(n, stalls)
	}
	return w
}

// loggedShare is the share of some stretches that the server's records of long commands could fill.
func loggedShare(n *facts.Node, stalls []facts.Span) float64 {
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

// stalls joins the probe's slow calls into stretches in which at least one waited.
func stalls(n *facts.Node) []facts.Span {
	var out []facts.Span
	for _, a := range n.Ledger.Slow { // ordered by their begin
		if a.Call.Node != n.Address || a.Call.Source != recording.SourceProbe || a.ExcessNs < minIdleServerWaitNs {
			continue
		}
		if k := len(out) - 1; k >= 0 && a.Call.IntendedNs <= out[k].ToNs {
			out[k].ToNs = max(out[k].ToNs, a.Call.EndNs)
			continue
		}
		out = append(out, facts.Span{FromNs: a.Call.IntendedNs, ToNs: a.Call.EndNs})
	}
	return out
}

// nothingPassed reports whether no call that began in a stall came back before its end, but for the last tenth: a
// connection that lost a segment waits alone.
func nothingPassed(n *facts.Node, stalls []facts.Span) bool {
	asked := false // on other connections
	came := func(fromNs, toNs int64, other bool) bool {
		for _, s := range stalls {
			margin := stallMargin(s)
			if fromNs > s.FromNs+margin/2 && fromNs < s.ToNs-margin {
				if toNs < s.ToNs-margin {
					return true
				}
				asked = asked || other
			}
		}
		return false
	}
	for _, c := range n.Rec.Calls {
		if c.Node != n.Address || c.Source != recording.SourceProbe {
			continue
		}
		if came(c.StartNs, c.EndNs, c.Conn == "fresh") && c.Error == "" {
			return false
		}
	}
	for _, p := range n.Events(recording.SourceServer, recording.KindPoll) {
		if came(p.TimeNs, p.TimeNs+p.DurationNs, true) {
			return false
		}
	}
	return asked
}

// sleep is the part of the stalls that the main thread slept, by the counters around them, and how often it woke up per
// second of the whole watch.
func sleep(n *facts.Node, stalls []facts.Span) (slept, wakeups float64) {
	run, delay := n.Series(series.MainRun), n.Series(series.MainDelay)
	var all, busy float64
	for i := 1; i < len(run); i++ {
		from, to := run[i-1].TimeNs, run[i].TimeNs
		within := facts.Overlap(stalls, facts.Span{FromNs: from, ToNs: to})
		if within == 0 || to <= from {
			continue
		}
		d0, _ := delay.At(from)
		d1, _ := delay.At(to)
		// All that it ran around a stall is counted as in it: this is a lower bound of the sleep.
		all += float64(within)
		busy += min(float64(within), run[i].Value-run[i-1].Value+d1-d0)
	}
	if all == 0 {
		return 0, 0
	}
	return 1 - busy/all, n.PerSecond(series.MainVoluntarySwitches)
}
