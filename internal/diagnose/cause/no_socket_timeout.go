package cause

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/recording"
)

// noSocketTimeout: a caller waits for a reply that will not come, and goes on waiting: until TCP gives up, which takes
// a quarter of an hour, or for ever where the request was acknowledged.
var noSocketTimeout = Cause{
	ID:    "no-socket-timeout",
	Title: "Callers wait without a timeout for replies that will not come",
	Layer: "client",
	Needs: Needs{
		T0: "nothing: the calls of others are not seen",
		T1: "on the callers' host: sockets that sent last and had no answer for longer than the timeouts of client " +
			"libraries, while the server answers others",
		T2: "requests that were retransmitted again and again, at intervals that double, on connections that nobody " +
			"closes",
	},
	After:   []string{"idle-conn-blackholed", "process-frozen", "packet-loss-rto"},
	Explain: explainNoTimeout,
}

const (
	// timeoutsEndBy is when a caller that has a usual timeout has given up: the longest defaults of libraries that have
	// one for each reply are 5 s (go-redis >= 9.22, redis-py >= 8, StackExchange.Redis; Jedis 2 s, Redisson 3 s), and a
	// second is left for a machine that is busy. Lettuce and PHP wait 60 s by default, which no request of a user
	// outlives either.
	timeoutsEndBy = int64(6e9)
	// stillAnswers: the server answered somebody in so long before the end of the watch, in which it was asked each
	// second.
	stillAnswers = int64(3e9)
)

// hang is a connection of a caller that waits, at the end of the watch, for a reply.
type hang struct {
	client, caller string
	waitNs         int64
	again          int // times that the request was retransmitted, without an answer
	source         string
}

// hangs are the connections that still wait when the watch ends, the longest first.
func hangs(n *facts.Node) []hang {
	by := map[string]hang{}
	for _, s := range n.UnansweredRequests() {
		if wait := n.EndNs - s.SentNs; !s.ClosedByClient && s.Retransmits >= facts.UnansweredRetransmits {
			by[s.Client] = hang{s.Client, s.Caller, wait, s.Retransmits, recording.SourceTap}
		}
	}
	for _, s := range n.Rec.Snapshots {
		var w recording.Waiter
		if s.Source != recording.SourceHost || s.Name != recording.SnapshotWaiter || json.Unmarshal([]byte(s.Body),
			&w) != nil || w.Node != n.Address {
			continue
		}
		wait, ok := n.Rec.Series(recording.SourceHost, s.Subject, "waiting_ns").Last()
		if !ok || wait <= 0 {
			continue
		}
		again, _ := n.Rec.Series(recording.SourceHost, s.Subject, "waiting_resends").Last()
		client := strings.TrimPrefix(s.Subject, recording.ConnPrefix)
		h := hang{client, fmt.Sprintf("%s[%d]", w.Comm, w.PID), int64(wait), int(again), recording.SourceHost}
		if w.PID == 0 {
			h.caller = facts.HostOf(client)
		}
		if int64(wait) >= by[client].waitNs {
			by[client] = h
		}
	}
	var out []hang
	for _, h := range by {
		if h.waitNs >= timeoutsEndBy && !meantToWait(n, h.client) {
			out = append(out, h)
		}
	}
	slices.SortFunc(out, func(a, b hang) int {
		return cmp.Or(cmp.Compare(b.waitNs, a.waitNs), cmp.Compare(a.client,
			b.client))
	})
	return out
}

// meantToWait reports whether a connection waits because its command does, as the server tells: BLPOP, a subscription,
// MONITOR, a replica.
func meantToWait(n *facts.Node, address string) bool {
	for _, c := range n.AllClients {
		if c.Addr == address && (strings.ContainsAny(c.Flags, "bPOSM") ||
			facts.LongWaitCommands[strings.ToUpper(c.Cmd)]) {
			return true
		}
	}
	return false
}

// answersAtEnd reports whether the server answered somebody shortly before the watch ended.
func answersAtEnd(n *facts.Node) bool {
	if s := n.Info("uptime_in_seconds"); len(s) > 0 && s[len(s)-1].TimeNs >= n.EndNs-stillAnswers {
		return true
	}
	for _, c := range n.Rec.Calls {
		if c.Node == n.Address && c.Error == "" && c.EndNs >= n.EndNs-stillAnswers && c.EndNs-c.StartNs < stillAnswers {
			return true
		}
	}
	return false
}

func explainNoTimeout(n *facts.Node) *Finding {
	hangs := hangs(n)
	if len(hangs) == 0 || !answersAtEnd(n) {
		return nil // a server that answers nobody is another trouble
	}
	var lost, waited int64
	who, again := facts.NameCounts{}, 0
	for _, h := range hangs {
		lost += min(h.waitNs, n.EndNs-n.StartNs)
		who[h.caller]++
		again = max(again, h.again)
	}
	for _, l := range n.Timelines() {
		waited += l.InFlightNs
	}
	worst := hangs[0]
	f := &Finding{Of: len(n.Ledger.Slow), Confidence: 0.85, ExcessShare: float64(lost) / float64(lost+min(waited,
		n.Ledger.ExcessNs))}
	f.support(worst.source, fmt.Sprintf("%d connections waited for a reply when the watch ended, the longest for %s "+
		"(%s), and nobody gave them up: %s", len(hangs), facts.Dur(worst.waitNs), worst.client, who.List(3)),
		float64(len(hangs)), "connections")
	f.support(worst.source, fmt.Sprintf("that is longer than the timeouts that client libraries have by default (2 "+
		"to %s; Lettuce and PHP 60 s)", facts.Dur(timeoutsEndBy-1e9)), float64(worst.waitNs), "ns")
	if again >= facts.UnansweredRetransmits {
		f.Confidence = 0.93
		f.support(worst.source, fmt.Sprintf("the request was retransmitted %d times, at intervals that double, "+
			"without "+
			"an acknowledgement: TCP itself gives up after about 15 minutes (tcp_retries2)", again), float64(again),
			"times")
	} else {
		f.support(worst.source, "the request was acknowledged, so that TCP has nothing to retransmit: without a "+
			"timeout it waits for ever", 0, "")
	}
	f.support(recording.SourceServer, "the server answered others until the end", 0, "")
	if len(n.AllClients) == 0 {
		f.Confidence -= 0.25
		f.doubt(recording.SourceServer, "CLIENT LIST is not known: a command that is meant to wait (BLPOP, a "+
			"subscription) looks the same", 0, "")
	}
	f.Fix = noTimeoutFix(n)
	f.See = []string{
		"https://redis.io/docs/latest/develop/clients/redis-py/produsage/#timeouts",
		"https://github.com/redis/lettuce/issues/2082", "https://man7.org/linux/man-pages/man7/tcp.7.html",
	}
	return f
}

func noTimeoutFix(n *facts.Node) []string {
	fix := []string{"Give every reply a time, some times the 99.9th percentile and not more than the request behind " +
		"it may take:"}
	fix = append(fix, remedy.For(n, remedy.ReplyTimeout, nil)...)
	return append(fix, "Let the kernel give up earlier, too: TCP_USER_TIMEOUT on the socket, or sysctl -w "+
		"net.ipv4.tcp_retries2=8 (about 100 s) on the callers' host",
		"Restart those that hang now, or close their sockets: ss -K dst ADDRESS dport = PORT")
}
