package cause

import (
	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// receiverStall: the client does not read its replies. Its receive buffer fills, the window closes, and the rest of the
// reply waits in the server's kernel and output buffer.
var receiverStall = Cause{
	ID: "receiver-stall",
	// The reader is late because the reply is big, and so was the work on it.
	After:   []string{"big-key-io", "slow-command", "lua-or-multi-long", "oversized-pipeline-or-multikey"},
	Explain: explainReceiver,
}

// windowBytes is the least window before it is scaled: the client's kernel takes a smaller reply, read or not.
// Bound: kernel, a window before it is scaled has 16 bits (tcp(7), RFC 7323).
const windowBytes = 64 << 10

func explainReceiver(n *facts.Node) *Finding {
	limited, acks := hosts.WindowLimitedNs(n), hosts.AcknowledgementsOf(n)
	if limited == 0 && len(acks.ClosedWindowConns) == 0 {
		return nil
	}
	byConn, who, bytes, calls := map[string]int64{}, facts.NameCounts{}, int64(0), int64(0)
	longest := account.Account{}
	cl := n.TapClaim(func(a account.Account) (times facts.StateTimes) {
		if a.Call.ReplyBytes < windowBytes {
			return nil
		}
		for _, s := range a.Segments {
			if s.Actor == account.Network && (s.State == account.Back || s.State == account.Retransmit) ||
				s.Actor == account.Server && s.State == account.Send || s.Actor == account.Client &&
				caller.IsReplyUnread(s) {
				times.Add(s, s.Ns()) // time when its thread had no CPU is another matter
			}
			if s.State == account.Unexplained && a.Call.Side == recording.Server &&
				(acks.ClosedWindowConns[a.Call.Conn] || limited > 0 && acks.LateConns[a.Call.Conn]) {
				times.Add(s, s.Ns()) // the server slept with a part of the reply that it could not send
			}
		}
		byConn[a.Call.Conn] += times.Ns()
		who[caller.ClientLabel(a.Call.Conn, a.Call.Client)]++
		bytes, calls = bytes+a.Call.ReplyBytes, calls+1
		if a.DurationNs() > longest.DurationNs() {
			longest = a
		}
		return times
	})
	var most int64 // of one connection: TCP_INFO is that of the worst, too
	for conn, ns := range byConn {
		if !acks.ClosedWindowConns[conn] { // seen on the connection itself
			most = max(most, ns)
		}
	}
	if !cl.Matters() || limited < degree.Most*float64(most) {
		return nil // TCP_INFO counts while it has something to send, and nothing else limits it
	}
	f := finding(n, cl)
	f.support(recording.SourceTap, float64(cl.Calls), "calls",
		"%s waited for the client to read a reply of %.1f MB on average, up to %s in one call: %s",
		ofSlow(cl.Calls, n), float64(bytes)/float64(calls)/1e6, format.Brief(cl.MaxNs), who.List(3))
	f.support(recording.SourceTap, float64(longest.DurationNs()), "ns", "the longest is %s with %.1f MB in %s: %.1f "+
		"MB per second", longest.Call.Op, float64(longest.Call.ReplyBytes)/1e6, format.Brief(longest.DurationNs()),
		float64(longest.Call.ReplyBytes)/1e6/(float64(longest.DurationNs())/1e9))
	if len(acks.ClosedWindowConns) > 0 {
		f.support(recording.SourceTap, float64(len(acks.ClosedWindowConns)), "clients", "%s at other addresses "+
			"announced a window of 0 before acknowledging such a reply", counted(len(acks.ClosedWindowConns), "client"))
	}
	if limited > 0 {
		f.support(recording.SourceHost, limited, "ns", "a peer's receive window limited the server's sockets, the "+
			"worst for %s of %.0f s (TCP_INFO rwnd_limited)", format.Brief(int64(limited)), n.Seconds())
	}
	if zero := n.Growth(series.TCPToZeroWindowAdv); zero > 0 {
		f.support(recording.SourceHost, zero, "times", "receivers in this network namespace closed their window %s "+
			"(TCPToZeroWindowAdv)", facts.TimesText(int(zero)))
	}
	f.supportPiles(n)
	if retransmitted := n.Growth(series.RetransSegs); retransmitted > 0 {
		f.support(recording.SourceHost, retransmitted, "segments", "%s retransmitted: into a closed window that is a "+
			"window probe, not a loss", counted(retransmitted, "segment"))
	}
	reader := who.Top(1)[0]
	f.FixSteps = receiverFix(reader)
	return f
}

// supportPiles shows replies that wait at the server.
func (f *Finding) supportPiles(n *facts.Node) {
	if q, ok := n.Series(series.SockSendQMax).Max(); ok && q >= windowBytes {
		f.support(recording.SourceHost, q, "bytes", "up to %.1f MB waited in the send queue of one socket", q/1e6)
	}
	var worst caller.Client
	for _, c := range caller.Clients(n) {
		if c.OMem > worst.OMem {
			worst = c
		}
	}
	if worst.OMem >= windowBytes {
		f.support(recording.SourceServer, float64(worst.OMem), "bytes",
			"CLIENT LIST: %s%s had %.1f MB of replies in its output buffer, last command %s", worst.Addr,
			caller.LibraryText(worst), float64(worst.OMem)/1e6, worst.Cmd)
	}
}

func receiverFix(reader string) []remedy.Step {
	return []remedy.Step{
		inApplication("read-then-process", "Let %s read a reply in one go and process it afterwards, in another "+
			"thread if that takes long", format.Name(reader)),
		orElse(inApplication("smaller-replies", "Ask for less at a time: windows of GETRANGE, LRANGE or XRANGE, "+
			"HSCAN, values below 100 kB")),
	}
}
