package cause

import (
	"fmt"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
)

// idleConnBlackholed: a firewall, NAT or balancer forgot a connection that was silent for long, and drops what belongs
// to it without a word. The first request after the pause is retransmitted again and again until the caller gives up.
// Catalogue C7.
var idleConnBlackholed = Cause{
	ID:    "idle-conn-blackholed",
	Title: "Something on the path forgets idle connections: the first call after a pause gets no answer",
	Layer: "network",
	Needs: Needs{
		T0: "nothing: the probe's connections are never idle",
		T2: "requests that were retransmitted again and again and never answered, only on connections that had been " +
			"idle",
	},
	Explain: explainBlackhole,
}

// longestIdle is the longest pause of a connection that was followed by an answered call, as far as its sums tell.
func longestIdle(l facts.ConnTimeline) (ns int64) {
	for _, s := range l.Steps {
		if s.Calls > 0 {
			ns = max(ns, s.IdleNs/s.Calls)
		}
	}
	return ns
}

func explainBlackhole(n *facts.Node) *Finding {
	var gone []facts.UnansweredRequest
	busy := 0
	for _, s := range n.UnansweredRequests() {
		switch {
		case s.Retransmits < facts.UnansweredRetransmits:
		case s.IdleBeforeNs < facts.LongIdleNs:
			busy++
		default:
			gone = append(gone, s)
		}
	}
	if len(gone) == 0 || busy >= len(gone) {
		return nil // connections in use lose their packets as well: the path is bad, not forgetful
	}
	var lost, longest int64
	var again, givenUp int
	limit, who := gone[0], facts.NameCounts{}
	lostConns := map[string]bool{}
	for _, s := range gone {
		lost += s.ToNs - s.SentNs
		longest = max(longest, s.ToNs-s.SentNs)
		again += s.Retransmits
		if s.ClosedByClient {
			givenUp++
		}
		if s.IdleBeforeNs < limit.IdleBeforeNs {
			limit = s
		}
		lostConns[s.Client] = true
		who[s.Caller]++
	}
	var waited, longestAlive, calls int64
	alive := 0
	for _, c := range n.Timelines() {
		if lostConns[c.Client] {
			continue
		}
		waited += c.InFlightNs
		if c.Calls > 0 {
			alive, calls = alive+1, calls+c.Calls
			longestAlive = max(longestAlive, longestIdle(c))
		}
	}
	f := &Finding{Of: len(n.Ledger.Slow), ExcessShare: float64(lost) / float64(lost+waited), Confidence: 0.95}
	f.support(recording.SourceTap, fmt.Sprintf("%d requests after a pause got no answer, up to %s until their caller "+
		"gave up or the watch ended; they were retransmitted %d times (%s)", len(gone), facts.Dur(longest), again,
		who.List(3)),
		float64(len(gone)), "calls")
	f.support(recording.SourceTap, fmt.Sprintf("all of these connections had been idle, the shortest for %s: %s",
		facts.Dur(limit.IdleBeforeNs), facts.ClientLabel(limit.Client, limit.Caller)), float64(limit.IdleBeforeNs),
		"ns")
	if alive > 0 {
		f.support(recording.SourceTap, fmt.Sprintf("%d other connections had %d calls answered meanwhile; their "+
			"pauses were %s at most", alive, calls, facts.Dur(longestAlive)), float64(alive), "connections")
	}
	if givenUp > 0 {
		f.support(recording.SourceTap, fmt.Sprintf("%d of them were closed by their caller with the call unanswered",
			givenUp), float64(givenUp), "connections")
	}
	if busy > 0 {
		f.Confidence -= 0.2
		f.doubt(recording.SourceTap, fmt.Sprintf("%d connections that were in use got no answer either: the path may "+
			"be gone for all", busy), float64(busy), "connections")
	}
	if longestAlive > limit.IdleBeforeNs {
		f.Confidence -= 0.2
		f.doubt(recording.SourceTap, fmt.Sprintf("another connection was idle for %s and still worked",
			facts.Dur(longestAlive)), float64(longestAlive), "ns")
	}
	if alive == 0 {
		f.Confidence -= 0.3
		f.doubt(recording.SourceTap, "no other connection had an answer meanwhile: the server or the whole path may "+
			"be gone", 0, "connections")
	}
	if n.HostWatched() && n.StateNs(recording.KindFrozen) > longest/2 {
		f.doubt(recording.SourceHost, "the server was frozen for a time; but its kernel acknowledges what arrives, "+
			"and then nothing is retransmitted", float64(n.StateNs(recording.KindFrozen)), "ns")
	}
	f.Fix = blackholeFix(n, limit.IdleBeforeNs)
	f.See = []string{
		"https://github.com/redis/node-redis/issues/1598",
		"https://docs.aws.amazon.com/elasticloadbalancing/latest/network/network-load-balancers.html#connection-idle-timeout", "https://man7.org/linux/man-pages/man7/tcp.7.html",
	}
	return f
}

func blackholeFix(n *facts.Node, limitNs int64) []string {
	secs := max(1, limitNs/2e9)
	keep := fmt.Sprintf("CONFIG SET tcp-keepalive %d on the server", secs)
	if now, ok := n.Config("tcp-keepalive"); ok {
		keep += fmt.Sprintf(" (now %s)", now)
	}
	return []string{
		keep + ": keepalives then pass before the connection is forgotten; it holds for connections that are opened " +
			"from then on",
		fmt.Sprintf("or in the clients: Lettuce KeepAliveOptions, go-redis >= 9.22 (30 s/5 s/3) or a Dialer with "+
			"KeepAlive, redis-py health_check_interval=%d, node-redis pingInterval, ioredis keepAlive", secs),
		"Close idle connections before the path forgets them (ConnMaxIdleTime, minEvictableIdleTime), and bound the " +
			"wait: TCP_USER_TIMEOUT or a read timeout of some hundred milliseconds",
		"Raise the idle timeout of the firewall or balancer on the path " +
			"(net.netfilter.nf_conntrack_tcp_timeout_established; AWS NLB 350 s, Azure LB 4 min), or let it send " +
			"resets",
	}
}
