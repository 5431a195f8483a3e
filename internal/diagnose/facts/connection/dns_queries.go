package connection

import (
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/recording"
)

// UnansweredQueryNs is the shortest time after which resolvers repeat a question: 1 s (resolv.conf(5), options
// timeout); 5 s by default.
// Bound: library, the least value of the option timeout of resolv.conf(5).
const UnansweredQueryNs = int64(1e9)

// DNSClient is a caller with the DNS queries that it waited for.
type DNSClient struct {
	*caller.Caller
	queries []dnsQuery
	// Dials are the dials that came right after a query.
	Dials []DialAfterQuery
	// Unanswered is the number of questions that had no answer in time.
	Unanswered int
	// MaxUnansweredNs is the longest of those, in nanoseconds.
	MaxUnansweredNs int64
	// HalfAnswered of Unanswered are of two questions at once of which one was answered.
	HalfAnswered int
	// Servers are the DNS servers that it asked, as far as they are known, by their address.
	Servers map[string]*DNSServer
}

// DNSServer is a DNS server as a caller saw it.
type DNSServer struct {
	Address string
	// Unanswered is the number of questions of the caller that had no answer in time.
	Unanswered int
	// Answers is the number of answers to anybody on the caller's host.
	Answers int
}

// SilentServer is the server without any answer that most questions were lost on; nil where there is none.
func (a *DNSClient) SilentServer() *DNSServer {
	return a.most(func(s *DNSServer) int {
		if s.Answers > 0 {
			return 0
		}
		return s.Unanswered
	})
}

// AnsweringServer is the one that answered most; nil where none is known.
func (a *DNSClient) AnsweringServer() *DNSServer {
	return a.most(func(s *DNSServer) int { return s.Answers })
}

func (a *DNSClient) most(count func(*DNSServer) int) (top *DNSServer) {
	for _, address := range slices.Sorted(maps.Keys(a.Servers)) {
		if s := a.Servers[address]; count(s) > 0 && (top == nil || count(s) > count(top)) {
			top = s
		}
	}
	return top
}

// DialAfterQuery is a dial with the DNS query that it waited for.
type DialAfterQuery struct {
	// Conn is the connection.
	Conn *caller.Conn
	// QueryNs is the duration of the query in nanoseconds, repetitions included.
	QueryNs int64
	// Repeated: it had to be asked again.
	Repeated bool
}

// dnsQuery is one query, with the thread that sent it; 0 where that is not known.
type dnsQuery struct {
	facts.Span
	tid      int
	answered bool
	used     bool // a dial came after it, or after what repeats it
}

// dnsQueries are those of each process; several questions at once count as one query.
func dnsQueries(n *facts.Node) map[int]*DNSClient {
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
			out[pid] = &DNSClient{Servers: map[string]*DNSServer{}}
		}
		out[pid].add(e, recording.DetailOf[recording.DNSQueryDetail](e))
	}
	return out
}

// add adds a query.
func (a *DNSClient) add(e recording.Event, d recording.DNSQueryDetail) {
	a.queries = append(a.queries, dnsQuery{
		Span: facts.Span{FromNs: e.TimeNs, ToNs: e.TimeNs + e.DurationNs}, tid: d.TID, answered: d.Answered,
	})
	lost := !d.Answered || e.DurationNs >= UnansweredQueryNs
	if lost {
		a.Unanswered++
		a.MaxUnansweredNs = max(a.MaxUnansweredNs, e.DurationNs)
	}
	if !d.Answered && d.Answers > 0 {
		a.HalfAnswered++
	}
	if d.Server == "" {
		return
	}
	s := a.Servers[d.Server]
	if s == nil {
		s = &DNSServer{Address: d.Server}
		a.Servers[d.Server] = s
	}
	s.Answers = max(s.Answers, d.ServerAnswers)
	if lost {
		s.Unanswered++
	}
}

// DNSClients are the callers that made DNS queries before they dialled the node.
func DNSClients(n *facts.Node, callers []*caller.Caller) (out []*DNSClient) {
	all := dnsQueries(n)
	for _, c := range callers {
		a := all[c.PID]
		if a == nil || c.PID == 0 {
			continue
		}
		a.Caller = c
		sort.SliceStable(a.queries, func(i, j int) bool { return a.queries[i].ToNs < a.queries[j].ToNs })
		for _, k := range c.Opened() {
			if i, ok := queryBefore(a.queries, k.OpenNs-k.DialNs); ok {
				from, repeated := firstAsked(a.queries, i)
				a.Dials = append(a.Dials, DialAfterQuery{k, a.queries[i].ToNs - from, repeated})
			}
		}
		out = append(out, a)
	}
	return out
}

// queryBefore finds the query that ended last before a dial began; each query is for one dial.
func queryBefore(all []dnsQuery, dial int64) (int, bool) {
	for i := sort.Search(len(all), func(i int) bool { return all[i].ToNs > dial }) - 1; i >= 0 &&
		atOnce(dial-all[i].ToNs); i-- {
		if !all[i].used {
			all[i].used = true
			for j := i - 1; j >= 0 && atOnce(all[i].ToNs-all[j].ToNs); j-- { // for IPv4 and IPv6
				if atOnce(all[i].FromNs-all[j].FromNs) && all[i].mayBeOf(all[j]) {
					all[j].used = true
					break
				}
			}
			return i, true
		}
	}
	return 0, false
}

// atOnce reports whether two things happened so soon after each other that one follows from the other.
func atOnce(ns int64) bool { return max(ns, -ns) <= int64(degree.AtOnce) }

// mayBeOf reports whether two queries can be of the same lookup: those of two threads are where a goroutine made them.
func (q dnsQuery) mayBeOf(o dnsQuery) bool {
	return q.tid == o.tid || q.FromNs == o.ToNs || q.tid == 0 || o.tid == 0
}

// firstAsked is when a query was asked first, and whether it repeats others: those that ended without an answer as it
// began.
func firstAsked(all []dnsQuery, i int) (from int64, repeated bool) {
	last := all[i]
	for j := i - 1; j >= 0; j-- {
		q := &all[j]
		if atOnce(last.FromNs-q.ToNs) && !q.answered && q.ToNs-q.FromNs >= UnansweredQueryNs/2 && last.mayBeOf(*q) {
			last, repeated, q.used = *q, true, true
		}
	}
	return last.FromNs, repeated || !last.answered || last.ToNs-last.FromNs >= UnansweredQueryNs
}

// QueryNs is the time of all queries before dials, in nanoseconds.
func (a *DNSClient) QueryNs() (ns int64) {
	for _, d := range a.Dials {
		ns += d.QueryNs
	}
	return ns
}
