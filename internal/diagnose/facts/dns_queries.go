package facts

import (
	"sort"
	"strconv"
	"strings"

	"slowpath/internal/recording"
)

const (
	// maxQueryToDialNs is the longest time from an answer to the dial that it was for. A query of two questions may end
	// a little later.
	// Bound: guess.
	maxQueryToDialNs = int64(20e6)
	// maxTwinGapNs is the longest time between the questions for IPv4 and IPv6, which are sent one after the other, and
	// both of which one dial waits for.
	// Bound: guess.
	maxTwinGapNs = int64(500e3)
	// UnansweredQueryNs is the shortest time after which resolvers repeat a question: 1 s (resolv.conf(5), options
	// timeout); 5 s by default.
	// Bound: library, the least value of the option timeout of resolv.conf(5).
	UnansweredQueryNs = int64(1e9)
	// maxRetryGapNs is the longest time from the end of a query to the one that repeats it.
	// Bound: guess.
	maxRetryGapNs = int64(1e6)
)

// DNSClient is a caller with the DNS queries that it waited for.
type DNSClient struct {
	*Caller
	queries Spans
	// Dials are the dials that came right after a query.
	Dials []DialAfterQuery
	// Unanswered is the number of questions that had no answer in time.
	Unanswered int
	// MaxUnansweredNs is the longest of those, in nanoseconds.
	MaxUnansweredNs int64
}

// DialAfterQuery is a dial with the DNS query that it waited for.
type DialAfterQuery struct {
	// Conn is the connection.
	Conn *Conn
	// QueryNs is the duration of the query in nanoseconds, repetitions included.
	QueryNs int64
}

// dnsQueries are those of each process; several questions at once count as one query.
func (n *Node) dnsQueries() map[int]*DNSClient {
	out := map[int]*DNSClient{}
	for _, e := range n.Rec.Events {
		if e.Source != recording.SourceTap || e.Kind != recording.KindDNSQuery {
			continue
		}
		pid, err := strconv.Atoi(strings.TrimPrefix(e.Subject, recording.ProcessPrefix))
		if err != nil {
			continue
		}
		if out[pid] == nil {
			out[pid] = &DNSClient{}
		}
		a := out[pid]
		a.queries = append(a.queries, Span{e.TimeNs, e.TimeNs + e.DurationNs})
		if d := recording.DetailOf[recording.DNSQueryDetail](e); !d.Answered || e.DurationNs >= UnansweredQueryNs {
			a.Unanswered++
			a.MaxUnansweredNs = max(a.MaxUnansweredNs, e.DurationNs)
		}
	}
	return out
}

// DNSClients are the callers that made DNS queries before they dialled the node.
func (n *Node) DNSClients(callers []*Caller) (out []*DNSClient) {
	all := n.dnsQueries()
	for _, c := range callers {
		a := all[c.PID]
		if a == nil || c.PID == 0 {
			continue
		}
		a.Caller = c
		sort.Slice(a.queries, func(i, j int) bool { return a.queries[i].ToNs < a.queries[j].ToNs })
		used := make([]bool, len(a.queries))
		for _, k := range c.Opened() {
			if i, ok := queryBefore(a.queries, used, k.OpenNs-k.DialNs); ok {
				a.Dials = append(a.Dials, DialAfterQuery{k, queryWithRetries(a.queries, i)})
			}
		}
		out = append(out, a)
	}
	return out
}

// queryBefore finds the query that ended last before a dial began; each query is for one dial.
func queryBefore(all Spans, used []bool, dial int64) (int, bool) {
	for i := sort.Search(len(all), func(i int) bool { return all[i].ToNs > dial }) - 1; i >= 0 &&
		dial-all[i].ToNs <= maxQueryToDialNs; i-- {
		if !used[i] {
			used[i] = true
			for j := i - 1; j >= 0 && all[i].ToNs-all[j].ToNs <= maxQueryToDialNs; j-- {
				if d := all[i].FromNs - all[j].FromNs; d >= -maxTwinGapNs && d <= maxTwinGapNs {
					used[j] = true
					break
				}
			}
			return i, true
		}
	}
	return 0, false
}

// queryWithRetries is the duration in nanoseconds of a query with the one that it repeats: that which ended as it
// began.
func queryWithRetries(all Spans, i int) int64 {
	from := all[i].FromNs
	for j := i - 1; j >= 0; j-- {
		if d := from - all[j].ToNs; d >= -maxRetryGapNs && d <= maxRetryGapNs &&
			all[j].ToNs-all[j].FromNs >= UnansweredQueryNs/2 {
			from = all[j].FromNs
		}
	}
	return all[i].ToNs - from
}

// QueryNs is the time of all queries before dials, in nanoseconds.
func (a *DNSClient) QueryNs() (ns int64) {
	for _, d := range a.Dials {
		ns += d.QueryNs
	}
	return ns
}

// DNSQueryNs is the time in nanoseconds that callers waited for DNS queries in order to dial this node.
func (n *Node) DNSQueryNs(callers []*Caller) (ns int64) {
	for _, a := range n.DNSClients(callers) {
		ns += a.QueryNs()
	}
	return ns
}
