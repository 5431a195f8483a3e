package cause

import (
	"fmt"
	"strconv"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// idleConnBlackholed: a firewall, NAT or balancer forgot a connection that was idle for long, and silently drops its
// packets. The first request after the pause is retransmitted until the caller gives up.
var idleConnBlackholed = Cause{
	ID:      "idle-conn-blackholed",
	Changes: []string{"nftables rules"},
	Explain: explainBlackhole,
}

// longestIdle is the longest pause of a connection before an answered call, as far as its sums show.
func longestIdle(l caller.ConnTimeline) (ns int64) {
	for s := range l.Steps() {
		if s.Calls > 0 {
			ns = max(ns, s.IdleNs/s.Calls)
		}
	}
	return ns
}

func explainBlackhole(n *facts.Node) *Finding {
	var gone []connection.UnansweredRequest
	busy := 0
	for _, s := range connection.UnansweredRequests(n) {
		switch {
		case s.Retransmits < connection.UnansweredRetransmits:
		case s.IdleBeforeNs < int64(degree.Long):
			busy++
		default:
			gone = append(gone, s)
		}
	}
	if len(gone) == 0 || busy >= len(gone) {
		return nil // connections in use lose their packets as well: the path is bad, not forgetful
	}
	var lost, longest int64
	again := 0
	limit, who := gone[0], facts.NameCounts{}
	lostConns := map[string]bool{}
	for _, s := range gone {
		lost += s.ToNs - s.SentNs
		longest = max(longest, s.ToNs-s.SentNs)
		again += s.Retransmits
		if s.IdleBeforeNs < limit.IdleBeforeNs {
			limit = s
		}
		lostConns[s.Client] = true
		who[s.Caller]++
	}
	var longestAlive, calls int64
	alive := 0
	for _, c := range caller.Timelines(n) {
		if c.Calls > 0 && !lostConns[c.Client] {
			alive, calls = alive+1, calls+c.Calls
			longestAlive = max(longestAlive, longestIdle(c))
		}
	}
	f := &Finding{Of: n.Ledger.Calls()}
	f.lose(n, facts.LostSilent, float64(lost), lost/int64(len(gone)))
	f.support(recording.SourceTap, float64(len(gone)), "calls",
		"%s after a pause got no answer, up to %s until the caller gave up or the watch ended; %s (%s)",
		counted(len(gone), "request"), format.Brief(longest), counted(again, "retransmission"), who.List(3))
	f.support(recording.SourceTap, float64(limit.IdleBeforeNs), "ns", "all of these connections had been idle, for at "+
		"least %s: %s", format.Brief(limit.IdleBeforeNs), caller.ClientLabel(limit.Client, limit.Caller))
	if alive > 0 {
		f.support(recording.SourceTap, float64(alive), "connections", "%s had %s answered meanwhile; the longest "+
			"pause was %s", counted(alive, "other connection"), counted(calls, "call"), format.Brief(longestAlive))
	}
	if longestAlive > limit.IdleBeforeNs {
		f.doubt(recording.SourceTap, float64(longestAlive), "ns",
			"another connection was idle for %s and still worked", format.Brief(longestAlive))
	}
	if alive == 0 {
		f.doubt(recording.SourceTap, 0, "connections",
			"no other connection got an answer meanwhile: the server or the whole path may be gone")
	}
	f.FixSteps = blackholeFix(n, limit.IdleBeforeNs)
	return f
}

func blackholeFix(n *facts.Node, limitNs int64) []remedy.Step {
	secs := int(max(1, limitNs/2e9))
	server := remedy.ConfigSet(n, "server-keepalive", "tcp-keepalive", strconv.Itoa(secs),
		"Let keepalives pass before the path forgets a connection (those that are opened from now on)")
	client := remedy.Step{
		ID: "client-keepalive", Kind: remedy.Setting, Or: true, Option: "TCP_KEEPIDLE", To: strconv.Itoa(secs),
		Where: "the sockets of the clients", Restart: "the application",
		Text: fmt.Sprintf("In seconds: Lettuce KeepAliveOptions, go-redis a Dialer with KeepAlive (9.22 and later "+
			"30 s), redis-py health_check_interval=%d, node-redis pingInterval, ioredis keepAlive", secs),
	}
	return []remedy.Step{
		server,
		client,
		inApplication("close-first", "Close connections that were idle for %d s before the path forgets them "+
			"(go-redis ConnMaxIdleTime, Jedis minEvictableIdleDuration), and limit the wait by a read timeout of some "+
			"hundred milliseconds or TCP_USER_TIMEOUT", secs),
		change("longer-idle-timeout", "Raise the idle timeout of the firewall or balancer on the path "+
			"(net.netfilter.nf_conntrack_tcp_timeout_established; AWS NLB 350 s, Azure LB 4 min), or let it send "+
			"resets"),
	}
}
