package cause

import (
	"fmt"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
)

// receiverStall: the client does not read what it asked for. Its receive buffer fills, the window closes, and the rest
// of the reply waits in the server's kernel and its output buffer.
var receiverStall = Cause{
	ID:    "receiver-stall",
	Title: "Clients read their replies too slowly: their receive window closes, and the server cannot send on",
	Layer: "network",
	Needs: Needs{
		T0: "replies that pile up in the server (CLIENT LIST omem; a hint)",
		T1: "connections that the peer's receive window holds up (TCP_INFO rwnd_limited), and windows that close " +
			"(TCPToZeroWindowAdv)",
		T2: "the calls that wait, and whose they are; clients on other hosts that closed their window before they " +
			"acknowledged the reply",
	},
	Explain: explainReceiver,
}

const (
	// A window is at least 64 kB before it is scaled (tcp(7)): what is smaller is taken by the client's kernel, read or
	// not.
	windowBytes = 64 << 10
	// limitedPart of the wait that the server's socket must have counted as limited by the receiver. TCP_INFO counts
	// only while it has something to send and nothing else limits it.
	limitedPart = 0.3
)

func explainReceiver(n *facts.Node) *Finding {
	limited, acks := n.WindowLimitedNs(), n.Acknowledgements()
	if limited == 0 && len(acks.ClosedWindowConns) == 0 {
		return nil
	}
	byConn, who, bytes, calls := map[string]int64{}, facts.NameCounts{}, int64(0), int64(0)
	longest := account.Account{}
	cl := n.TapClaim(func(a account.Account) int64 {
		if a.Call.ReplyBytes < windowBytes {
			return 0
		}
		var ns int64
		for _, s := range a.Segments {
			if s.Actor == account.Network && (s.State == account.Back || s.State == account.Retransmit) ||
				s.Actor == account.Server && s.State == account.Send || s.Actor == account.Client &&
				facts.IsReplyUnread(s) {
				ns += s.Ns() // that its thread had no CPU is another matter
			}
			if s.State == account.Unexplained && a.Call.Side == recording.Server &&
				(acks.ClosedWindowConns[a.Call.Conn] ||
					limited > 0 && acks.LateConns[a.Call.Conn]) {
				ns += s.Ns() // the server slept with a part of the reply that it could not send
			}
		}
		byConn[a.Call.Conn] += ns
		who[facts.ClientLabel(a.Call.Conn, a.Call.Client)]++
		bytes, calls = bytes+a.Call.ReplyBytes, calls+1
		if a.DurationNs() > longest.DurationNs() {
			longest = a
		}
		return ns
	})
	var most int64 // of one connection: TCP_INFO is that of the worst, too
	for conn, ns := range byConn {
		if !acks.ClosedWindowConns[conn] { // seen on the connection itself
			most = max(most, ns)
		}
	}
	if !cl.Matters() || limited < limitedPart*float64(most) {
		return nil
	}
	f := finding(n, cl, 0.95)
	f.support(recording.SourceTap, fmt.Sprintf("%d of %d slow calls waited for a reply of %.1f MB on average to be "+
		"taken, up to %s in one call: %s", cl.Calls, len(n.Ledger.Slow), float64(bytes)/float64(calls)/1e6,
		facts.Dur(cl.MaxNs), who.List(3)), float64(cl.Calls), "calls")
	f.support(recording.SourceTap, fmt.Sprintf("the longest is %s with %.1f MB in %s: %.1f MB per second",
		longest.Call.Op, float64(longest.Call.ReplyBytes)/1e6, facts.Dur(longest.DurationNs()),
		float64(longest.Call.ReplyBytes)/1e6/(float64(longest.DurationNs())/1e9)), float64(longest.DurationNs()), "ns")
	if len(acks.ClosedWindowConns) > 0 {
		f.support(recording.SourceTap, fmt.Sprintf("%d clients at other addresses said, before they had acknowledged "+
			"such a reply, that they take no more bytes (a window of 0)", len(acks.ClosedWindowConns)),
			float64(len(acks.ClosedWindowConns)), "clients")
	}
	if limited > 0 {
		f.support(recording.SourceHost, fmt.Sprintf("the server's sockets were held up by a peer's receive window, "+
			"the worst for %s of %.0f s (TCP_INFO rwnd_limited)", facts.Dur(int64(limited)), n.Seconds()), limited,
			"ns")
	}
	if zero := n.Host("net.TCPToZeroWindowAdv").Growth(); zero > 0 {
		f.support(recording.SourceHost, fmt.Sprintf("%.0f times a receiver in this network namespace closed its "+
			"window (TCPToZeroWindowAdv)", zero), zero, "times")
	}
	f.supportPiles(n)
	if resent := n.Host("net.RetransSegs").Growth(); resent > 0 {
		f.support(recording.SourceHost, fmt.Sprintf("%.0f segments were retransmitted: into a closed window that is a "+
			"question whether it has opened, not a loss", resent), resent, "segments")
	}
	reader := who.Top(1)[0]
	f.Fix = []string{
		fmt.Sprintf("Look at what %s does while it reads: a reply must be read in one go and worked on afterwards, "+
			"by another thread where that takes long.", reader),
		"Ask for less at a time: GETRANGE, HSCAN, LRANGE or XRANGE windows, values below 100 kB.",
		"Bound what the server keeps for such clients: CONFIG SET client-output-buffer-limit \"normal 64mb 32mb 10\" " +
			"closes those that stay behind.",
	}
	f.See = []string{
		"https://redis.io/docs/latest/develop/reference/clients/#output-buffer-limits",
		"https://www.rfc-editor.org/rfc/rfc9293#name-managing-the-window",
	}
	return f
}

// supportPiles shows replies that wait at the server's end.
func (f *Finding) supportPiles(n *facts.Node) {
	if q, ok := n.Host("sock.sendq_max_bytes").Max(); ok && q >= windowBytes {
		f.support(recording.SourceHost, fmt.Sprintf("up to %.1f MB waited in the send queue of one socket", q/1e6), q,
			"bytes")
	}
	var worst facts.Client
	for _, c := range n.Clients() {
		if c.OMem > worst.OMem {
			worst = c
		}
	}
	if worst.OMem >= windowBytes {
		f.support(recording.SourceServer, fmt.Sprintf("CLIENT LIST: %s%s had %.1f MB of reply waiting in the server, "+
			"last command %s", worst.Addr, facts.LibraryText(worst), float64(worst.OMem)/1e6, worst.Cmd),
			float64(worst.OMem),
			"bytes")
	}
}
