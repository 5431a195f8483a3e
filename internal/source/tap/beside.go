//go:build linux

package tap

import (
	"net/netip"
	"slices"
	"strings"

	"slowpath/internal/recording"
)

// asker is a process and a node that it asks.
type asker struct {
	pid  uint32
	node string
}

// exchange is the last that a process did with a node: from the send of a request to the read of its reply.
type exchange struct {
	from, to int64
	waiting  bool // not all was answered
}

// view is one look: what processes did last with each node, and which of the calls that were slow in the end waited
// then.
type view struct {
	at   int64
	ends map[asker]exchange
	slow map[asker]recording.Call // of several the one that was sent last
}

// views are the looks of the last seconds. What they saw is booked once the calls that waited then have been reported,
// at their ends.
type views struct {
	several bool // nodes are watched
	last    int64
	list    []*view
}

// keepViews is for how long a look waits for the ends of calls.
const keepViews = int64(2e9)

// wanted reports whether a look is worth while: a client had slow calls lately, and has other nodes that it can have
// asked.
func (w *views) wanted(now int64) bool { return w.several && w.last != 0 && now-w.last < lookAfter }

func (w *views) add(v *view) { w.list = append(w.list, v) }

// glance adds a connection to a look.
func (b *book) glance(v *view, g *kernelGlance) {
	client, server := endsOf(&g.Addr)
	n, ok := b.node(server, g.Addr.Role, g.Tgid)
	pid := g.Tgid
	if g.Addr.Role == roleServer {
		pid = uint32(b.ends[client].pid)
	}
	if !ok || g.From == 0 || pid == 0 || int(pid) == b.self {
		return
	}
	k := asker{pid, n.Address}
	e := exchange{b.time(g.From), b.time(g.To), g.Outstanding > 0}
	if old, known := v.ends[k]; !known || e.from > old.from {
		v.ends[k] = e
	}
}

// waited notes a slow call of a client of this host in the looks that fell into its wait, once it had been slow by
// then. Both ends' views count: where the server's end parses for both, the client's tells of calls that were answered
// together the first only.
func (b *book) waited(c recording.Call, client netip.AddrPort) {
	if b.ends[client].pid == 0 {
		return
	}
	b.looks.last = max(b.looks.last, c.EndNs)
	for _, v := range slices.Backward(b.looks.list) {
		if v.at < c.StartNs {
			break
		}
		k := asker{uint32(b.ends[client].pid), c.Node}
		if v.at >= c.EndNs || v.at-c.StartNs < int64(b.Slow) || v.slow[k].StartNs > c.StartNs {
			continue
		}
		if v.slow == nil {
			v.slow = map[asker]recording.Call{}
		}
		v.slow[k] = c
	}
}

// beside books the looks that are old enough: what a process with a slow call had last sent to that node is held
// against what it had last sent to the others. Something that was sent just now tells nothing yet.
func (b *book) beside(now int64) {
	for len(b.looks.list) > 0 && b.looks.list[0].at < now-keepViews {
		v := b.looks.list[0]
		b.looks.list = b.looks.list[1:]
		for k, c := range v.slow {
			start := c.StartNs
			if last := v.ends[k]; last.waiting {
				start = max(start, last.from)
			}
			if v.at-start < int64(b.Slow)/2 {
				continue
			}
			b.Sink.Event(recording.Event{
				TimeNs: start, DurationNs: v.at - start, Source: recording.SourceTap,
				Subject: c.Node, Kind: recording.KindBeside,
				Detail: recording.Detail(recording.BesideDetail{
					Op: c.Op, Client: c.Conn, Process: c.Client,
					Others: v.others(k, start),
				}),
			})
		}
	}
}

// others are what the process of a slow call did last with each other node.
func (v *view) others(of asker, start int64) (out []recording.Beside) {
	for k, e := range v.ends {
		if k.pid != of.pid || k.node == of.node {
			continue
		}
		if s, slow := v.slow[k]; slow && s.StartNs >= e.from {
			e = exchange{from: s.StartNs, to: v.at, waiting: true}
		}
		o := recording.Beside{Node: k.node, AfterNs: e.from - start, Waiting: e.waiting}
		if !e.waiting {
			o.TookNs = max(e.to-e.from, 0)
		}
		out = append(out, o)
	}
	slices.SortFunc(out, func(a, b recording.Beside) int { return strings.Compare(a.Node, b.Node) })
	return out
}
