package live

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"slowpath/internal/recording"
)

// Second is all calls of one kind of caller to one node, that ended in one second.
type Second struct {
	Unix   int64
	Node   string
	Whose  Whose
	Calls  int64
	Slow   int64
	Failed int64 // error replies that are no redirects, and calls without a reply
	// Latencies are from when a call was due to its reply. Calls without a reply, and those of commands that wait by
	// design, are none of them. Those of users are timed at the clients' end where most of them were seen there.
	Latencies Latencies
}

// Op is all calls of users of one command.
type Op struct {
	Node      string
	Op        string
	Latencies Latencies
}

// node is what is kept of one node.
type node struct {
	seconds map[int64]*second
	ops     map[string]bool // commands that have a place of their own
	errors  map[string]float64
	minNs   int64 // the fastest call of users at the clients' end, or of slowpath; 0: none yet
}

// second is what the sources said of one second of a node.
type second struct {
	own                                     Latencies
	atServer, atClient                      map[string]*Latencies // of users, by command
	ownFailed, failedAtServer, failedClient int64
}

// otherOps has the calls of commands beyond maxOps.
const otherOps = "other"

// Histogram implements recording.Sink.
func (v *View) Histogram(h recording.Histogram) {
	v.mu.Lock()
	defer v.mu.Unlock()
	at := h.Second
	if h.Source == recording.SourceTap {
		at-- // it bears the second in which it was read, after the calls
	}
	v.advance(h.Second)
	s := v.second(h.Node, at)
	where, op, _ := strings.Cut(h.Op, " ")
	if s == nil {
		return
	}
	into := &s.own
	switch {
	case h.Source == recording.SourceTap && where == recording.Server:
		into = v.of(h.Node, s.atServer, op)
	case h.Source == recording.SourceTap:
		into = v.of(h.Node, s.atClient, op)
	case h.Source != recording.SourceProbe:
		return
	}
	v.reader.Each(h.HDR, into.Add)
	if least := into.MinNs(); least > 0 && where != recording.Server {
		if n := v.nodes[h.Node]; n.minNs == 0 || least < n.minNs {
			n.minNs = least
		}
	}
}

// of is where the calls of a command are counted. v.mu is held.
func (v *View) of(address string, by map[string]*Latencies, op string) *Latencies {
	n := v.nodes[address]
	if !n.ops[op] {
		if len(n.ops) >= maxOps {
			op = otherOps
		}
		n.ops[op] = true
	}
	if by[op] == nil {
		by[op] = &Latencies{}
	}
	return by[op]
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
		s = &second{atServer: map[string]*Latencies{}, atClient: map[string]*Latencies{}}
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
func (s *second) users() map[string]*Latencies {
	count := func(by map[string]*Latencies) (n int64) {
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

func (v *View) threshold() int64 {
	const floor, times, ceiling = int64(5 * time.Millisecond), 3, int64(500 * time.Millisecond)
	if v.o.Slow > 0 {
		return int64(v.o.Slow)
	}
	slowest := int64(0)
	for _, n := range v.nodes {
		slowest = max(slowest, n.minNs)
	}
	return min(max(floor, times*slowest), ceiling)
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
			users := Second{Unix: at, Node: name, Whose: Users, Failed: max(s.failedAtServer, s.failedClient)}
			for _, l := range s.users() {
				users.Latencies.Merge(*l)
			}
			own := Second{Unix: at, Node: name, Whose: Own, Failed: s.ownFailed}
			own.Latencies.Merge(s.own)
			for _, one := range []Second{users, own} {
				one.Calls, one.Slow = one.Latencies.Calls(), one.Latencies.From(slow)
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
		sums := map[string]*Latencies{}
		for at, s := range v.nodes[name].seconds {
			if at < from || at >= to {
				continue
			}
			for op, l := range s.users() {
				if sums[op] == nil {
					sums[op] = &Latencies{}
				}
				sums[op].Merge(*l)
			}
		}
		for op, l := range sums {
			out = append(out, Op{Node: name, Op: op, Latencies: *l})
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
	side, _, code, ok := recording.ParseErrorReplies(s.Name)
	if !ok || code == "MOVED" || code == "ASK" || code == "TRYAGAIN" {
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
