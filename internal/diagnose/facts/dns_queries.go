package facts

import (
	"sort"
	"strconv"
	"strings"

	"slowpath/internal/recording"
)

// Bounds of lookups.
const (
	// dialBehind: who looks a name up in order to dial does so at once. The rest of a lookup of two questions may end a
	// little later.
	maxQueryToDialNs = int64(20e6)
	// twin: the questions for IPv4 and IPv6 are sent one behind the other, and one dial waits for both.
	maxTwinGapNs = int64(500e3)
	// lostQuestion: the shortest that resolvers wait before they ask again is 1 s (resolv.conf(5), options timeout), 5
	// s by default.
	UnansweredQueryNs = int64(1e9)
)

// Asker is what a process waited for name servers.
type DNSClient struct {
	*Caller
	queries         Spans
	Dials           []DialAfterQuery // those that came right behind a lookup
	Unanswered      int              // questions that had no answer in time
	MaxUnansweredNs int64            // most that one took
}

type DialAfterQuery struct {
	Conn    *Conn
	QueryNs int64 // of the lookup before it
}

// lookups are those of each process, one that asked several questions at once counted once.
func (n *Node) dnsQueries() map[int]*DNSClient {
	out := map[int]*DNSClient{}
	for _, e := range n.Rec.Events {
		if e.Source != recording.SourceTap || e.Kind != recording.KindLookup {
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
		if d := recording.DetailOf[recording.LookupDetail](e); !d.Answered || e.DurationNs >= UnansweredQueryNs {
			a.Unanswered++
			a.MaxUnansweredNs = max(a.MaxUnansweredNs, e.DurationNs)
		}
	}
	return out
}

// Askers are the callers of the node that looked names up before they dialled it.
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

// behind finds the lookup that ended last before a dial began; each is for one dial.
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

// before is the time of a lookup with the one that it repeats: what ended as it began.
func queryWithRetries(all Spans, i int) int64 {
	from := all[i].FromNs
	for j := i - 1; j >= 0; j-- {
		if d := from - all[j].ToNs; d >= -int64(1e6) && d <= int64(1e6) &&
			all[j].ToNs-all[j].FromNs >= UnansweredQueryNs/2 {
			from = all[j].FromNs
		}
	}
	return all[i].ToNs - from
}

func (a *DNSClient) QueryNs() (ns int64) {
	for _, d := range a.Dials {
		ns += d.QueryNs
	}
	return ns
}

// LookupNs is what callers waited for names in order to dial this node.
func (n *Node) DNSQueryNs(callers []*Caller) (ns int64) {
	for _, a := range n.DNSClients(callers) {
		ns += a.QueryNs()
	}
	return ns
}
