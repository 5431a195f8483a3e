package join

import (
	"cmp"
	"sort"

	"slowpath/internal/recording"
)

// join makes one call of its two ends, in the server's time. The server's part keeps its times. The network has the
// rest before and after it: as out and back where the bounds of the clocks can tell them apart, else as way.
func (p pair) join(clocks clockBounds, retransmitted []recording.Segment) (recording.Call, []recording.Segment) {
	network := p.networkNs()
	least, most := p.outBounds(clocks)
	out := least + (most-least)/2

	c := p.server
	c.Side, c.Client, c.Error = "both", p.client.Client, cmp.Or(c.Error, p.client.Error)
	c.IntendedNs = p.server.IntendedNs - out
	c.StartNs, c.EndNs = c.IntendedNs, c.IntendedNs+p.client.EndNs-p.start()
	shift := c.IntendedNs - p.start()
	arrived := p.replyAtNs + shift

	var list segmentList
	list.add(recording.Network, recording.Out, c.IntendedNs, c.IntendedNs+least)
	list.add(recording.Network, recording.Way, c.IntendedNs+least, c.IntendedNs+out)
	for _, s := range p.serverSegs {
		s.ToNs = min(s.ToNs, arrived) // see networkNs
		list.addSegment(s)
	}
	list.add(recording.Network, recording.Way, p.server.EndNs, arrived-(network-most))
	list.add(recording.Network, recording.Back, arrived-(network-most), arrived)
	for _, s := range p.clientSegs {
		s.FromNs, s.ToNs = s.FromNs+shift, s.ToNs+shift
		switch {
		case s.FromNs >= arrived:
			list.addSegment(s)
		case s.Actor == recording.Network && s.State == recording.Retransmit:
			list.overlay(s)
		}
	}
	for _, s := range retransmitted {
		list.overlay(s)
	}
	if p.sendNs > 0 {
		list.overlay(recording.Segment{
			Actor: recording.Client, State: recording.Send, FromNs: c.IntendedNs,
			ToNs: min(c.IntendedNs+p.sendNs, p.server.IntendedNs),
		})
	}
	segs := partition(list, c.IntendedNs, c.EndNs)
	for i := range segs {
		segs[i].CallID = c.ID
	}
	return c, segs
}

// outBounds is the least and the most that the way out can have of the network's share, in ns.
func (p pair) outBounds(clocks clockBounds) (least, most int64) {
	network := p.networkNs()
	if lo, hi, ok := clocks.at(p.start()); ok {
		arrived := p.server.IntendedNs - p.start()
		if from, to := max(0, arrived-hi), min(network, arrived-lo); from <= to {
			return from, to
		}
	}
	return 0, network
}

// segmentList is segments in order of time, disjoint.
type segmentList []recording.Segment

func (l *segmentList) add(actor, state string, from, to int64) {
	l.addSegment(recording.Segment{Actor: actor, State: state, FromNs: from, ToNs: to})
}

func (l *segmentList) addSegment(s recording.Segment) {
	if s.ToNs > s.FromNs {
		*l = append(*l, s)
	}
}

// overlay replaces the network segments that s covers by s.
func (l *segmentList) overlay(s recording.Segment) {
	var out segmentList
	for _, g := range *l {
		from, to := max(g.FromNs, s.FromNs), min(g.ToNs, s.ToNs)
		if from >= to || g.Actor != recording.Network || g.State == recording.Retransmit {
			out = append(out, g)
			continue
		}
		before, over, after := g, s, g
		before.ToNs, over.FromNs, over.ToNs, after.FromNs = from, from, to, to
		out.addSegment(before)
		out.addSegment(over)
		out.addSegment(after)
	}
	*l = out
}

// partition makes segments a partition of [from, to): sorted, cut to it, disjoint, with equal neighbours merged and
// gaps as unexplained.
func partition(segs []recording.Segment, from, to int64) []recording.Segment {
	segs = append([]recording.Segment(nil), segs...)
	sort.SliceStable(segs, func(i, j int) bool { return segs[i].FromNs < segs[j].FromNs })
	var l segmentList
	at := from
	for _, s := range segs {
		s.FromNs, s.ToNs = max(s.FromNs, at), min(s.ToNs, to)
		if s.FromNs >= s.ToNs {
			continue
		}
		l.add(recording.Nobody, recording.Unexplained, at, s.FromNs)
		at = s.ToNs
		if n := len(l) - 1; n >= 0 && l[n].Actor == s.Actor && l[n].State == s.State && l[n].Culprit == s.Culprit {
			l[n].ToNs = at
			continue
		}
		l.addSegment(s)
	}
	l.add(recording.Nobody, recording.Unexplained, at, to)
	return l
}

// retransmits are the retransmissions of a recording's host, by the client's end of the connection.
func retransmits(r *recording.Recording) map[string][]recording.Segment {
	out := map[string][]recording.Segment{}
	for _, e := range r.EventsOf(recording.SourceTap, "", recording.KindRetransmit) {
		d := recording.DetailOf[recording.RetransmitDetail](e)
		if d.Spurious() {
			continue
		}
		out[d.Client] = append(out[d.Client], recording.Segment{
			Actor: recording.Network, State: recording.Retransmit,
			FromNs: e.TimeNs, ToNs: e.TimeNs + e.DurationNs, Culprit: "segment",
		})
	}
	return out
}
