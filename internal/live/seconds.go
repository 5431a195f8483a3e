package live

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
	"slowpath/internal/stats"
)

// Second is all calls of one kind of caller to one node, that ended in one second.
type Second struct {
	Unix   int64
	Node   string
	Whose  Whose
	Side   string // recording.Server where users' calls were seen at the server's end, too, else recording.Client
	Calls  int64
	Slow   int64
	Failed int64 // error replies that are no redirects, and calls without a reply
	// Latencies are from when a call was due to its reply. Calls without a reply, and commands that wait by design,
	// are left out. Users' calls are timed at the clients' end where most of them were seen there.
	Latencies Latencies
}

// Op is all calls of users of one command.
type Op struct {
	Node      string
	Op        string
	Slow      int64
	Latencies Latencies
}

// counted are calls of one command in one second.
type counted struct {
	Latencies
	slow int64
}

// node is what is kept of one node.
type node struct {
	seconds map[int64]*second
	ops     map[string]bool // commands that have a place of their own
	errors  map[string]float64
	// The fastest call of users at the clients' end, of slowpath on its kept connection, and on fresh ones; 0: none.
	usersMinNs, keptMinNs, freshMinNs int64
	// Of the distance: the fastest call of slowpath from its send on, and its last TCP connects with their median.
	tripMinNs, connectNs, connectMinNs int64
	connects                           []int64
	awaited                            []awaited // of the next seconds
}

// awaited are calls to be removed, since operations count instead of them, that are not counted yet.
type awaited struct {
	op        string
	ns, calls int64
}

// maxAwaited of them are kept.
const maxAwaited = 1000

// second is what the sources said of one second of a node.
type second struct {
	kept, fresh                             Latencies           // slowpath's own, by connection
	atServer, atClient                      map[string]*counted // of users, by command
	ownFailed, failedAtServer, failedClient int64
	usersMaxNs                              map[string]int64 // by command, of those recorded one by one
}

// otherOps has the calls of commands beyond maxOps.
const otherOps = "other"

// Histogram implements recording.Sink.
func (v *View) Histogram(h recording.Histogram) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.advance(h.Second)
	if h.Source != recording.SourceTap {
		return // slowpath's own calls are counted one by one
	}
	s := v.second(h.Node, h.Second-1) // it bears the second in which it was read, after the calls
	where, op, _ := strings.Cut(h.Op, " ")
	if s == nil {
		return
	}
	by := s.atClient
	if where == recording.Server {
		by = s.atServer
	}
	into, slow := v.of(h.Node, by, op), v.threshold()
	if where == recording.Dialled {
		slow = v.freshThreshold(v.nodes[h.Node])
	}
	v.reader.Each(h.HDR, func(ns, calls int64) {
		if where == recording.AwaitedCalls { // their operations count instead
			n := v.nodes[h.Node]
			if missing := into.Remove(ns, calls); missing > 0 && len(n.awaited) < maxAwaited {
				n.awaited = append(n.awaited, awaited{op, ns, missing})
			}
			calls = -calls
		}
		into.Add(ns, calls)
		if ns >= slow {
			into.slow += calls
		}
	})
	if where != recording.Client {
		return
	}
	n := v.nodes[h.Node]
	lower(&n.usersMinNs, into.MinNs())
	for i := range n.awaited {
		if a := &n.awaited[i]; a.op == op {
			a.calls = into.Remove(a.ns, a.calls)
		}
	}
	n.awaited = slices.DeleteFunc(n.awaited, func(a awaited) bool { return a.calls == 0 })
}

// of is where the calls of a command are counted. v.mu is held.
func (v *View) of(address string, by map[string]*counted, op string) *counted {
	if op = v.placeOf(address, op); by[op] == nil {
		by[op] = &counted{}
	}
	return by[op]
}

// placeOf is the name under which calls of a command are counted. v.mu is held.
func (v *View) placeOf(address, op string) string {
	n := v.nodes[address]
	if !n.ops[op] {
		if len(n.ops) >= maxOps {
			op = otherOps
		}
		n.ops[op] = true
	}
	return op
}

// second is that of a node, nil where there is no room for it. v.mu is held.
func (v *View) second(address string, at int64) *second {
	n := v.nodes[address]
	if n == nil {
		if len(v.nodes) >= maxNodes {
			return nil
		}
		n = &node{seconds: map[int64]*second{}, ops: map[string]bool{}, errors: map[string]float64{}}
		v.nodes[address] = n
	}
	s := n.seconds[at]
	if s == nil {
		now := v.now()
		if at < now-v.seconds || at > now+complete {
			return nil // too old, or of a clock that is not ours
		}
		s = &second{
			atServer: map[string]*counted{}, atClient: map[string]*counted{}, usersMaxNs: map[string]int64{},
		}
		n.seconds[at] = s
		for old := range n.seconds {
			if old < now-v.seconds {
				delete(n.seconds, old)
			}
		}
	}
	return s
}

// users are all calls of users, by the end where most were seen.
func (s *second) users() map[string]*counted {
	count := func(by map[string]*counted) (n int64) {
		for _, l := range by {
			n += l.Calls()
		}
		return n
	}
	if atClient := count(s.atClient); atClient >= count(s.atServer)-atClient {
		return s.atClient
	}
	return s.atServer
}

// Threshold is from when on a call is slow at the moment.
func (v *View) Threshold() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	return time.Duration(v.threshold())
}

// As in a verdict (docs/decisions/0003-automatic-slow-threshold.md).
const slowFloor, slowTimes, slowCeiling = int64(5 * time.Millisecond), 3, int64(500 * time.Millisecond)

// maxConnects is how many connects are kept, to know their median.
const maxConnects = 1000

// distanceNs is the least round trip of the path, as in a verdict; 0 where it is not known.
func (v *View) distanceNs(address string, n *node) int64 {
	if n.keptMinNs == 0 || 2*n.connectNs < n.tripMinNs {
		return 0
	}
	least := n.connectMinNs
	of := series.CallersLeastRTT
	lower(&least, int64(v.samples[sampleKey{of.Source, of.About(address), of.Name}].Value))
	return least
}

// learnDistance takes what a call of slowpath says of the path. v.mu is held.
func (v *View) learnDistance(c recording.Call, segs []recording.Segment) {
	n := v.nodes[c.Node]
	if n == nil {
		return
	}
	if c.Conn != connFresh && c.StartNs != c.EndNs {
		lower(&n.tripMinNs, c.EndNs-c.StartNs)
	}
	for _, s := range segs {
		if s.State == recording.Dial && s.Culprit == "connect" {
			n.connects = append(n.connects, s.ToNs-s.FromNs)
			n.connects = n.connects[max(len(n.connects)-maxConnects, 0):]
			n.connectNs = stats.Quantile(slices.Sorted(slices.Values(n.connects)), 0.5)
			lower(&n.connectMinNs, s.ToNs-s.FromNs)
		}
	}
}

// threshold is that of slowpath's kept connections, where it has none of its calls, and without any of the users'.
func (v *View) threshold() int64 {
	if v.o.Slow > 0 {
		return int64(v.o.Slow)
	}
	var users, kept, fresh int64
	for name, n := range v.nodes {
		least := n.keptMinNs
		lower(&least, v.distanceNs(name, n))
		kept, fresh = max(kept, least), max(fresh, n.freshMinNs)
		lower(&users, n.usersMinNs)
	}
	return min(max(slowFloor, slowTimes*cmp.Or(kept, fresh, users)), slowCeiling)
}

// slowNs is from when on a call is slow: on a fresh connection it takes the round trips of a handshake more than
// others.
func (v *View) slowNs(c recording.Call, segs []recording.Segment) int64 {
	n := v.nodes[c.Node]
	fresh := c.Source == recording.SourceProbe && c.Conn == connFresh || recording.OpeningNs(c, segs) > 0
	if n == nil || !fresh {
		return v.threshold()
	}
	return v.freshThreshold(n)
}

func (v *View) freshThreshold(n *node) int64 {
	if v.o.Slow > 0 {
		return int64(v.o.Slow)
	}
	return min(max(v.threshold(), slowTimes*n.freshMinNs), slowCeiling)
}

// connFresh is recording.Call.Conn of slowpath's calls on new connections.
const connFresh = "fresh"

// fastest learns the time of a call of slowpath. v.mu is held.
func (v *View) fastest(address, conn string, ns int64) {
	n := v.nodes[address]
	switch {
	case n == nil:
	case conn == connFresh:
		lower(&n.freshMinNs, ns)
	default:
		lower(&n.keptMinNs, ns)
	}
}

// lower makes least the lower one of two times, of which 0 is none.
func lower(least *int64, ns int64) {
	if ns > 0 && (*least == 0 || ns < *least) {
		*least = ns
	}
}

// countCall counts what the histograms do not say of a call: of users' slow ones the exact time. v.mu is held.
func (v *View) countCall(c SlowCall, slow bool) {
	s := v.second(c.Call.Node, c.Call.EndNs/1e9)
	switch {
	case s == nil:
	case c.Whose == Users && !slow:
	case c.Whose == Users:
		op := v.placeOf(c.Call.Node, c.Call.Op)
		s.usersMaxNs[op] = max(s.usersMaxNs[op], c.Ns())
	default:
		if c.Call.Conn == connFresh {
			s.fresh.Add(c.Ns(), 1)
		} else {
			s.kept.Add(c.Ns(), 1)
		}
		if c.Call.Error != "" {
			s.ownFailed++
		}
	}
}

// countWait counts a call that no histogram has, at ends of its connection. v.mu is held.
func (v *View) countWait(c recording.Call, sides ...string) {
	s := v.second(c.Node, c.EndNs/1e9)
	if s == nil {
		return
	}
	for _, side := range sides {
		by := s.atClient
		if side == recording.Server {
			by = s.atServer
		}
		into := v.of(c.Node, by, c.Op)
		into.Add(c.EndNs-c.IntendedNs, 1)
		if c.EndNs-c.IntendedNs >= v.threshold() {
			into.slow++
		}
	}
}

// recordedMaxNs are the times of the slowest users' calls that were recorded one by one, of a command or of all
// (empty), that ended in a second, or in one beside it: the tap counts between two reads, and not by the clock.
func (n *node) recordedMaxNs(at int64, op string) (ns []int64) {
	for near := at - 1; near <= at+1; near++ {
		s, most := n.seconds[near], int64(0)
		if s == nil {
			continue
		}
		for of, one := range s.usersMaxNs {
			if op == "" || of == op {
				most = max(most, one)
			}
		}
		ns = append(ns, most)
	}
	return ns
}

// Nodes are the nodes that had calls or failures, sorted.
func (v *View) Nodes() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.nodeNames()
}

func (v *View) nodeNames() []string {
	names := make([]string, 0, len(v.nodes))
	for name := range v.nodes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Seconds are those of [from, to) that are complete, ordered by time, node and whose calls they are. A second without
// calls is none of them.
func (v *View) Seconds(from, to int64) (out []Second) {
	to = min(to, v.Complete())
	v.mu.Lock()
	defer v.mu.Unlock()
	slow := v.threshold()
	for name, n := range v.nodes {
		for at, s := range n.seconds {
			if at < from || at >= to {
				continue
			}
			users := Second{
				Unix: at, Node: name, Whose: Users, Side: recording.Client,
				Failed: max(s.failedAtServer, s.failedClient),
			}
			if len(s.atServer) > 0 || s.failedAtServer > 0 {
				users.Side = recording.Server
			}
			for _, l := range s.users() {
				users.Latencies.Merge(l.Latencies)
				users.Slow += l.slow
			}
			users.Latencies.slowest(n.recordedMaxNs(at, ""))
			own := Second{
				Unix: at, Node: name, Whose: Own, Side: recording.Client, Failed: s.ownFailed,
				Slow: s.kept.From(slow) + s.fresh.From(v.freshThreshold(n)),
			}
			own.Latencies.Merge(s.kept)
			own.Latencies.Merge(s.fresh)
			for _, one := range []Second{users, own} {
				one.Calls = one.Latencies.Calls()
				if one.Calls+one.Failed > 0 {
					out = append(out, one)
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b Second) int {
		return cmp.Or(cmp.Compare(a.Unix, b.Unix), cmp.Compare(a.Node, b.Node), -cmp.Compare(a.Whose, b.Whose))
	})
	return out
}

// Ops are the commands of users in [from, to), of each node, those with the most calls first.
func (v *View) Ops(from, to int64) (out []Op) {
	to = min(to, v.Complete())
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, name := range v.nodeNames() {
		sums, recorded := map[string]*counted{}, map[string][]int64{}
		for at, s := range v.nodes[name].seconds {
			if at < from || at >= to {
				continue
			}
			for op, l := range s.users() {
				if sums[op] == nil {
					sums[op] = &counted{}
				}
				sums[op].Merge(l.Latencies)
				sums[op].slow += l.slow
				recorded[op] = append(recorded[op], v.nodes[name].recordedMaxNs(at, op)...)
			}
		}
		for op, l := range sums {
			l.slowest(recorded[op])
			out = append(out, Op{Node: name, Op: op, Slow: l.slow, Latencies: l.Latencies})
		}
	}
	slices.SortFunc(out, func(a, b Op) int {
		return cmp.Or(cmp.Compare(b.Latencies.Calls(), a.Latencies.Calls()), cmp.Compare(a.Node, b.Node),
			cmp.Compare(a.Op, b.Op))
	})
	return out
}

// countErrors counts how much a counter of error replies grew. v.mu is held.
func (v *View) countErrors(s recording.Sample) {
	side, op, code, ok := recording.ParseErrorReplies(s.Name)
	if !ok || recording.ExpectedReply(op, code) || code == "MOVED" || code == "ASK" || code == "TRYAGAIN" {
		return
	}
	in := v.second(s.Subject, s.TimeNs/1e9)
	if in == nil {
		return
	}
	n := v.nodes[s.Subject]
	if _, known := n.errors[s.Name]; !known && len(n.errors) >= maxSamples {
		return
	}
	grown := s.Value - n.errors[s.Name]
	if grown < 0 {
		grown = s.Value // it began again
	}
	n.errors[s.Name] = s.Value
	if side == recording.Server {
		in.failedAtServer += int64(grown)
	} else {
		in.failedClient += int64(grown)
	}
}
