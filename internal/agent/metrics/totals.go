package metrics

import (
	"math"
	"strings"

	"slowpath/internal/live"
	"slowpath/internal/recording"
)

// classic are the upper bounds of the buckets of classic histograms, in seconds.
var classic = []float64{
	0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
}

var inf = math.Inf(1)

// nativeSchema divides each power of two into 2^3 buckets: each is 9 % wider than the one before.
const nativeSchema = 3

// nodeTotals are all calls of one kind of caller to one node since the agent began.
type nodeTotals struct {
	calls, slow, failed int64
	atServer            bool             // they are seen at the server's end
	seconds             float64          // of all calls together
	native              map[int]int64    // calls by bucket of nativeSchema
	classic             []int64          // calls by bucket, and those above the last one
	exemplars           []*live.SlowCall // by the same: the last slow call
}

// whoseLabel names the callers as the documents do.
func whoseLabel(w live.Whose) string {
	if w == live.Own {
		return "slowpath"
	}
	return string(w)
}

func (m *Metrics) node(node string, whose live.Whose) *nodeTotals {
	k := nodeKey{label(node), whoseLabel(whose)}
	t := m.nodes[k]
	if t == nil {
		t = &nodeTotals{
			native: map[int]int64{}, classic: make([]int64, len(classic)+1),
			exemplars: make([]*live.SlowCall, len(classic)+1),
		}
		m.nodes[k] = t
	}
	return t
}

// count adds what the view has and was not counted yet. Nodes, callers and commands of a view are bounded.
func (m *Metrics) count() {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.o.View
	to := v.Complete() - settle
	if to <= m.next {
		return
	}
	for _, s := range v.Seconds(m.next, to) {
		m.node(s.Node, s.Whose).add(s)
	}
	for _, o := range v.Ops(m.next, to) {
		m.commands.add(o.Op, tally{o.Latencies.Calls(), o.Slow, sumNs(o.Latencies)})
	}
	callers := v.CallersUntil(to)
	made := live.NewCalls(m.seen, callers)
	for _, c := range callers {
		m.callers.add(c.Name, tally{calls: made[c.Key]})
	}
	m.seen = callers
	slow, missed := v.SlowSince(m.number)
	m.missed, m.number = m.missed+int64(missed), m.number+missed
	for _, s := range slow {
		if s.Call.EndNs/1e9 >= to {
			break // as its second; by then it has its account
		}
		m.slowCall(s)
		m.number = s.Number
	}
	m.commands.rank(to)
	m.callers.rank(to)
	m.next = to
}

func (t *nodeTotals) add(s live.Second) {
	t.calls += s.Calls
	t.slow += s.Slow
	t.failed += s.Failed
	t.atServer = t.atServer || s.Side == recording.Server
	s.Latencies.Each(func(from, to, calls int64) {
		seconds := float64(from+to) / 2e9
		t.seconds += seconds * float64(calls)
		t.classic[bucketOf(seconds)] += calls
		t.native[nativeBucketOf(seconds)] += calls
	})
}

func bucketOf(seconds float64) int {
	for i, most := range classic {
		if seconds <= most {
			return i
		}
	}
	return len(classic)
}

// nativeBucketOf is the place of the bucket whose upper bound is 2^(place/8).
func nativeBucketOf(seconds float64) int {
	return int(math.Ceil(math.Log2(max(seconds, 1e-9)) * (1 << nativeSchema)))
}

func sumNs(l live.Latencies) (ns int64) {
	l.Each(func(from, to, calls int64) { ns += (from + to) / 2 * calls })
	return ns
}

func (m *Metrics) slowCall(s live.SlowCall) {
	for _, p := range s.Segments {
		m.waits[waitOf(whoseLabel(s.Whose), p)] += max(p.ToNs-p.FromNs, 0)
	}
	if s.Whose == live.Users {
		m.callers.add(m.o.View.CallerOf(s.Call), tally{slow: 1, ns: s.Ns()})
	}
	m.node(s.Call.Node, s.Whose).exemplars[bucketOf(float64(s.Ns())/1e9)] = &s
}

// short keeps the labels of an exemplar within the 128 characters that OpenMetrics allows.
func short(s string, most int) string {
	s = label(s)
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "")
	}
	return s
}

// waitOf is where the time of a segment is counted. What a source of a later version writes is "other".
func waitOf(whose string, s recording.Segment) waitKey {
	if !actors[s.Actor] || !states[s.State] {
		return waitKey{whose, other, other}
	}
	return waitKey{whose, s.Actor, s.State}
}

var (
	actors = setOf(recording.App, recording.Client, recording.Network, recording.Server, recording.Proxy,
		recording.Nobody)
	states = setOf(recording.PoolWait, recording.LoopWait, recording.LockWait, recording.Dial, recording.TLS,
		recording.Handshake, recording.RunQueue, recording.Out, recording.Back, recording.Way,
		recording.Retransmit, recording.Throttled, recording.Frozen, recording.Busy, recording.Blocked,
		recording.Exec, recording.Withheld, recording.AckWait, recording.Forward, recording.Send,
		recording.Receive, recording.OffCPU, recording.Unexplained)
)

func setOf(names ...string) map[string]bool {
	set := map[string]bool{}
	for _, n := range names {
		set[n] = true
	}
	return set
}
