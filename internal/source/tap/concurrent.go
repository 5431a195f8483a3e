//go:build linux

package tap

import (
	"slices"
	"strings"

	"slowpath/internal/recording"
)

// processNode is a process and a node that it sends requests to.
type processNode struct {
	pid  uint32
	node string
}

// exchange is the last of a process with a node: from the send of a request to the read of its reply.
type exchange struct {
	from, to int64
	waiting  bool // not all was answered
}

// snapshot is the last exchange of each process with each node, and which of the calls that were slow in the end waited
// then.
type snapshot struct {
	at        int64
	exchanges map[processNode]exchange
	slow      map[processNode]recording.Call // of several the one that was sent last
}

// snapshots are those of the last seconds. What they show is recorded once the calls that waited then have ended.
type snapshots struct {
	several  bool // nodes are watched
	lastSlow int64
	list     []*snapshot
}

// keepSnapshots is for how long a snapshot waits for the ends of calls.
const keepSnapshots = int64(2e9)

// wanted reports whether a snapshot is of use: a client had slow calls lately, and has other nodes that it can have
// sent requests to.
func (s *snapshots) wanted(now int64) bool {
	return s.several && s.lastSlow != 0 && now-s.lastSlow < snapshotAfter
}

func (s *snapshots) add(v *snapshot) { s.list = append(s.list, v) }

// addExchange adds the last exchange of a connection to a snapshot.
func (r *recorder) addExchange(v *snapshot, c *kernelConnSnapshot) {
	client, server := endsOf(&c.Addr)
	n, ok := r.nodeOf(&c.Addr, server, c.Tgid)
	pid := c.Tgid
	if c.Addr.Role == roleServer {
		pid = uint32(r.clients[client].pid)
	}
	if !ok || c.From == 0 || pid == 0 || c.Addr.Observer != notObserver || r.sample.wasLeftOut(client) {
		return
	}
	k := processNode{pid, n.Address}
	e := exchange{r.time(c.From), r.time(c.To), c.Outstanding > 0}
	if old, known := v.exchanges[k]; !known || e.from > old.from {
		v.exchanges[k] = e
	}
}

// addSlowCall notes a slow call of a client of this host in the snapshots that were taken while it waited, once it had
// been slow by then. Both ends' views count: where the server's end parses for both, the client's has only the first of
// calls that were answered together.
func (r *recorder) addSlowCall(c recording.Call, client clientEnd) {
	if r.clients[client].pid == 0 {
		return
	}
	r.snapshots.lastSlow = max(r.snapshots.lastSlow, c.EndNs)
	for _, v := range slices.Backward(r.snapshots.list) {
		if v.at < c.StartNs {
			break
		}
		k := processNode{uint32(r.clients[client].pid), c.Node}
		if v.at >= c.EndNs || v.at-c.StartNs < int64(r.Slow) || v.slow[k].StartNs > c.StartNs {
			continue
		}
		if v.slow == nil {
			v.slow = map[processNode]recording.Call{}
		}
		v.slow[k] = c
	}
}

// emitConcurrent records the snapshots that are old enough: what a process with a slow call had last sent to that node
// is compared with what it had last sent to the others. A request that was sent just before shows nothing yet.
func (r *recorder) emitConcurrent(now int64) {
	for len(r.snapshots.list) > 0 && r.snapshots.list[0].at < now-keepSnapshots {
		v := r.snapshots.list[0]
		r.snapshots.list = r.snapshots.list[1:]
		for k, c := range v.slow {
			start := c.StartNs
			if last := v.exchanges[k]; last.waiting {
				start = max(start, last.from)
			}
			if v.at-start < int64(r.Slow)/2 {
				continue
			}
			r.Sink.Event(recording.Event{
				TimeNs: start, DurationNs: v.at - start, Source: recording.SourceTap,
				Subject: c.Node, Kind: recording.KindOtherNodes,
				Detail: recording.Detail(recording.OtherNodesDetail{
					Op: c.Op, Client: c.Conn, Process: c.Client,
					Others: v.otherNodes(k, start),
				}),
			})
		}
	}
}

// otherNodes are the last exchanges of the process of a slow call with each other node.
func (v *snapshot) otherNodes(of processNode, start int64) (out []recording.OtherNodeCall) {
	for k, e := range v.exchanges {
		if k.pid != of.pid || k.node == of.node {
			continue
		}
		if s, slow := v.slow[k]; slow && s.StartNs >= e.from {
			e = exchange{from: s.StartNs, to: v.at, waiting: true}
		}
		o := recording.OtherNodeCall{Node: k.node, SentAfterNs: e.from - start, Waiting: e.waiting}
		if !e.waiting {
			o.TookNs = max(e.to-e.from, 0)
		}
		out = append(out, o)
	}
	slices.SortFunc(out, func(a, b recording.OtherNodeCall) int { return strings.Compare(a.Node, b.Node) })
	return out
}
