package cause

import (
	"cmp"
	"encoding/json"
	"net/netip"
	"slices"
	"strings"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// noSocketTimeout: a caller waits for a reply that will not come: until TCP gives up after a quarter of an hour, or for
// ever where the request was acknowledged.
var noSocketTimeout = Cause{
	ID:      "no-socket-timeout",
	Options: []remedy.Topic{remedy.ReplyTimeout},
	// A connection that overflowed the accept queue is open at the client's end only: what is sent on it waits.
	After:   []string{"idle-conn-blackholed", "process-frozen", "packet-loss-rto", "accept-backlog-overflow"},
	Explain: explainNoTimeout,
}

const (
	// timeoutsEndBy is when a caller with a default timeout has given up: the longest defaults of libraries with a
	// reply timeout are 5 s (go-redis >= 9.22, redis-py >= 8, StackExchange.Redis; Jedis 2 s, Redisson 3 s), plus one
	// second for a busy machine. Lettuce and PHP wait 60 s by default, which no user request survives either.
	// Bound: library, 5 s of go-redis, redis-py and StackExchange.Redis, and a second.
	timeoutsEndBy = int64(6e9)
	// stillAnswers: the server answered a call within this time before the end of the watch.
	stillAnswers = int64(degree.Several * facts.PollIntervalNs)
)

// hang is a connection with a caller that still waits for a reply at the end of the watch.
type hang struct {
	client, caller string
	waitNs         int64
	again          int // retransmissions of the request, without an answer
	source         string
}

// hangs are the connections that still wait when the watch ends, the longest first.
func hangs(n *facts.Node) []hang {
	by := map[string]hang{}
	for _, s := range connection.UnansweredRequests(n) {
		if wait := n.EndNs - s.SentNs; !s.ClosedByClient && s.Retransmits >= connection.UnansweredRetransmits {
			by[s.Client] = hang{s.Client, s.Caller, wait, s.Retransmits, recording.SourceTap}
		}
	}
	for _, s := range n.Rec.Snapshots {
		var w recording.PendingCaller
		if s.Source != recording.SourceHost || s.Name != recording.SnapshotPendingCaller ||
			json.Unmarshal([]byte(s.Body), &w) != nil || w.Node != n.Address {
			continue
		}
		client := strings.TrimPrefix(s.Subject, recording.ConnPrefix)
		wait, ok := n.Rec.Of(series.ConnWaiting, client).Last()
		if !ok || wait <= 0 {
			continue
		}
		again, _ := n.Rec.Of(series.ConnResends, client).Last()
		h := hang{client, hosts.ProcessName(n.Case, w.PID, w.Comm), int64(wait), int(again), recording.SourceHost}
		if w.PID == 0 {
			h.caller = caller.HostTextOf(n.Case, client)
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
		return cmp.Or(cmp.Compare(b.waitNs, a.waitNs), cmp.Compare(a.client, b.client))
	})
	return out
}

// meantToWait reports whether a connection waits because its command does, as the server reports: BLPOP, a
// subscription, MONITOR, a replica.
func meantToWait(n *facts.Node, address string) bool {
	for _, c := range caller.AllClients(n) {
		if c.Addr == address && (strings.ContainsAny(c.Flags, "bPOSM") ||
			facts.LongWaitCommands[strings.ToUpper(c.Cmd)]) {
			return true
		}
	}
	return false
}

// answersAtEnd reports whether the server answered a call shortly before the watch ended.
func answersAtEnd(n *facts.Node) bool {
	if s := n.Series(series.UptimeInSeconds); len(s) > 0 && s[len(s)-1].TimeNs >= n.EndNs-stillAnswers {
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
		return nil // a server that answers nobody is another problem
	}
	var lost int64
	who, again := facts.NameCounts{}, 0
	for _, h := range hangs {
		lost += min(h.waitNs, n.EndNs-n.StartNs)
		who[h.caller]++
		again = max(again, h.again)
	}
	worst := hangs[0]
	f := &Finding{Of: n.Ledger.Calls()}
	f.lose(n, facts.LostSilent, float64(lost), lost/int64(len(hangs)))
	f.support(worst.source, float64(len(hangs)), "connections",
		"%s still waiting for a reply at the end of the watch, the longest for %s (%s), never given up: %s",
		counted(len(hangs), "connection"), format.Brief(worst.waitNs), worst.client, who.List(3))
	f.support(worst.source, float64(worst.waitNs), "ns", "that is longer than the default timeouts of client "+
		"libraries (2 to %s; Lettuce and PHP 60 s)", format.Brief(timeoutsEndBy-1e9))
	if again >= connection.UnansweredRetransmits {
		f.support(worst.source, float64(again), "times", "the request was retransmitted %d times, at doubling "+
			"intervals, without an acknowledgement: TCP gives up after about 15 minutes (tcp_retries2)", again)
	} else {
		f.support(worst.source, 0, "",
			"the request was acknowledged, so TCP has nothing to retransmit: without a timeout it waits for ever")
	}
	f.support(recording.SourceServer, 0, "", "the server answered others until the end")
	if len(caller.AllClients(n)) == 0 {
		f.doubt(recording.SourceServer, 0, "",
			"CLIENT LIST is not known: a blocking command (BLPOP, a subscription) looks the same")
	}
	f.FixSteps = noTimeoutFix(n, hangs, again)
	return f
}

// noTimeoutFix ends waits that hang now and those to come; again is how often a request was retransmitted.
func noTimeoutFix(n *facts.Node, hangs []hang, again int) []remedy.Step {
	steps := offered(n, remedy.ReplyTimeout, nil, "A timeout of some times the 99.9th percentile, and no longer "+
		"than the user request behind it may take")
	if kill, ok := closeHanging(hangs); ok {
		steps = append(steps, kill)
	}
	if again < connection.UnansweredRetransmits {
		return steps // the kernel has nothing to give up
	}
	return append(steps, remedy.Step{
		ID: "kernel-gives-up", Kind: remedy.Command, Or: true,
		Text: "Where the application cannot be changed: let the kernel of the callers' host give up after about " +
			"100 s instead of 15 minutes (TCP_USER_TIMEOUT does it for one socket)",
		Command: "sysctl -w net.ipv4.tcp_retries2=8",
		Risk:    "it is so for all connections of the host",
	})
}

// closeHanging closes the sockets that wait now, by their addresses, which are known where they are no Unix sockets.
func closeHanging(hangs []hang) (remedy.Step, bool) {
	var sockets []string
	for _, h := range hangs {
		if a, err := netip.ParseAddrPort(h.client); err == nil {
			sockets = append(sockets, "src "+a.String())
		}
	}
	if len(sockets) == 0 {
		return remedy.Step{}, false
	}
	return remedy.Step{
		ID: "close-hanging-sockets", Kind: remedy.Command,
		Text:    "Until then close the sockets that hang now, on the callers' host",
		Command: "ss -K " + format.Shell(strings.Join(sockets, " or ")),
		Risk:    "their calls fail, as they would after a timeout; some kernels cannot (CONFIG_INET_DIAG_DESTROY)",
	}, true
}
