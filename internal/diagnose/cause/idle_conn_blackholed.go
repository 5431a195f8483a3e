package cause

import (
	"fmt"
	"sort"

	"slowpath/internal/recording"
)

// idleConnBlackholed: a firewall, NAT or balancer forgot a connection that was silent for long, and drops what belongs
// to it without a word. The first request after the pause is sent again and again until the caller gives up. Catalogue
// C7.
var idleConnBlackholed = Cause{
	ID:    "idle-conn-blackholed",
	Title: "Something on the path forgets idle connections: the first call after a pause gets no answer",
	Layer: "network",
	Needs: Needs{
		T0: "nothing: the probe's connections are never idle",
		T2: "requests that were sent again and again and never answered, only on connections that had been idle",
	},
	Explain: explainBlackhole,
}

// Bounds of a black hole.
const (
	// A lost segment is sent again once; twice in a row and no answer is a path that is gone. The timer doubles: 200,
	// 400, 800 ms.
	resentInVain = 2
	// idleLong is the least pause that counts as one. Those who forget do so after minutes; a second is far above the
	// gaps of busy callers.
	idleLong = int64(1e9)
)

// Silence is a request that had no answer.
type Silence struct {
	Client, Caller string
	SentNs, ToNs   int64 // until its caller gave up, or the last that was seen of it
	Again          int   // times it was sent again
	WasIdleNs      int64 // the connection's pause before
	GivenUp        bool
}

// silences are the requests of clients on this host that were sent again and never answered.
func (n *Node) silences() []Silence {
	byConn := map[string]*Silence{}
	for _, e := range n.Events(recording.SourceTap, recording.KindRetransmit) { // in order of time
		d := recording.DetailOf[recording.RetransmitDetail](e)
		if d.From != recording.Client || d.State != "established" {
			continue
		}
		s := byConn[d.Client]
		// what is sent again now was sent after the last time: an answer came between
		if s == nil || e.TimeNs > s.ToNs {
			s = &Silence{Client: d.Client, SentNs: e.TimeNs}
			byConn[d.Client] = s
		}
		s.Again++
		s.ToNs = e.TimeNs + e.DurationNs
	}
	if len(byConn) == 0 {
		return nil
	}
	for _, c := range n.Rec.Calls {
		if s := byConn[c.Conn]; s != nil && c.Source == recording.SourceTap && c.EndNs > s.ToNs {
			delete(byConn, c.Conn) // it was answered in the end
		}
	}
	for _, e := range n.Events(recording.SourceTap, recording.KindClose) {
		d := recording.DetailOf[recording.ConnDetail](e)
		if s := byConn[d.Client]; s != nil && d.Side == recording.Client && d.Waiting > 0 {
			s.ToNs, s.GivenUp = e.TimeNs, true
		}
	}
	var out []Silence
	for _, l := range n.lanes() {
		s := byConn[l.Client]
		if s == nil || l.OpenNs > s.SentNs || l.CloseNs > 0 && l.CloseNs < s.SentNs {
			continue
		}
		s.Caller, s.WasIdleNs = l.caller, l.idleBefore(s.SentNs)
		out = append(out, *s)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].SentNs < out[j].SentNs })
	return out
}

// idleBefore is how long the connection was idle when it sent at a time. A look at it is taken then, if there was none
// within a second; one that was there before the watch and never used in it was idle all that time.
func (l lane) idleBefore(sentNs int64) int64 {
	for i := len(l.steps) - 1; i >= 0; i-- {
		if s := l.steps[i]; s.to <= sentNs+int64(100e6) {
			if sentNs-s.to > idleLong {
				return sentNs - s.to
			}
			return s.idleNs
		}
	}
	return 0
}

// longestIdle is the longest pause of a connection that was followed by an answered call, as far as its sums tell.
func (l lane) longestIdle() (ns int64) {
	for _, s := range l.steps {
		if s.calls > 0 {
			ns = max(ns, s.idleNs/s.calls)
		}
	}
	return ns
}

func explainBlackhole(n *Node) *Finding {
	var gone []Silence
	busy := 0
	for _, s := range n.silences() {
		switch {
		case s.Again < resentInVain:
		case s.WasIdleNs < idleLong:
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
	limit, who := gone[0], tally{}
	lostConns := map[string]bool{}
	for _, s := range gone {
		lost += s.ToNs - s.SentNs
		longest = max(longest, s.ToNs-s.SentNs)
		again += s.Again
		if s.GivenUp {
			givenUp++
		}
		if s.WasIdleNs < limit.WasIdleNs {
			limit = s
		}
		lostConns[s.Client] = true
		who[s.Caller]++
	}
	var waited, longestAlive, calls int64
	alive := 0
	for _, c := range n.lanes() {
		if lostConns[c.Client] {
			continue
		}
		waited += c.InFlightNs
		if c.Calls > 0 {
			alive, calls = alive+1, calls+c.Calls
			longestAlive = max(longestAlive, c.longestIdle())
		}
	}
	f := &Finding{Of: len(n.Ledger.Slow), ExcessShare: float64(lost) / float64(lost+waited), Confidence: 0.95}
	f.support(recording.SourceTap, fmt.Sprintf("%d requests after a pause got no answer, up to %s until their caller "+
		"gave up or the watch ended; they were sent again %d times (%s)", len(gone), dur(longest), again, who.list(3)),
		float64(len(gone)), "calls")
	f.support(recording.SourceTap, fmt.Sprintf("all of these connections had been idle, the shortest for %s: %s",
		dur(limit.WasIdleNs), whose(limit.Client, limit.Caller)), float64(limit.WasIdleNs), "ns")
	if alive > 0 {
		f.support(recording.SourceTap, fmt.Sprintf("%d other connections had %d calls answered meanwhile; their "+
			"pauses were %s at most", alive, calls, dur(longestAlive)), float64(alive), "connections")
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
	if longestAlive > limit.WasIdleNs {
		f.Confidence -= 0.2
		f.doubt(recording.SourceTap, fmt.Sprintf("another connection was idle for %s and still worked",
			dur(longestAlive)), float64(longestAlive), "ns")
	}
	if alive == 0 {
		f.Confidence -= 0.3
		f.doubt(recording.SourceTap, "no other connection had an answer meanwhile: the server or the whole path may "+
			"be gone", 0, "connections")
	}
	if n.Hosted() && n.StateNs(recording.KindFrozen) > longest/2 {
		f.doubt(recording.SourceHost, "the server was frozen for a time; but its kernel acknowledges what arrives, "+
			"and then nothing is sent again", float64(n.StateNs(recording.KindFrozen)), "ns")
	}
	f.Fix = blackholeFix(n, limit.WasIdleNs)
	f.See = []string{
		"https://github.com/redis/node-redis/issues/1598",
		"https://docs.aws.amazon.com/elasticloadbalancing/latest/network/network-load-balancers.html#connection-idle-timeout", "https://man7.org/linux/man-pages/man7/tcp.7.html",
	}
	return f
}

func blackholeFix(n *Node, limitNs int64) []string {
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
