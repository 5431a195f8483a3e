package join

import (
	"sort"

	"slowpath/internal/recording"
)

// join makes one call of its two ends, in the server's time. The server's part keeps its place there, what was before
// and after it is the network's: as out and back so far as the clocks' bounds tell the one from the other, as way where
// they do not.
func (p pair) join(k clocks, resent []recording.Segment) (recording.Call, []recording.Segment) {
	network := p.networkNs()
	least, most := int64(0), network // of the way out
	if lo, hi, ok := k.at(p.start()); ok {
		arrived := p.server.IntendedNs - p.start()
		if from, to := max(0, arrived-hi), min(network, arrived-lo); from <= to {
			least, most = from, to
		}
	}
	out := least + (most-least)/2

	c := p.server
	c.Side, c.Client, c.Error = "both", p.client.Client, or(c.Error, p.client.Error)
	c.IntendedNs = p.server.IntendedNs - out
	c.StartNs, c.EndNs = c.IntendedNs, c.IntendedNs+p.client.EndNs-p.start()
	shift := c.IntendedNs - p.start()
	arrived := p.arrived + shift

	var l line
	l.add(recording.Network, recording.Out, c.IntendedNs, c.IntendedNs+least)
	l.add(recording.Network, recording.Way, c.IntendedNs+least, c.IntendedNs+out)
	for _, s := range p.inner {
		s.ToNs = min(s.ToNs, arrived) // see networkNs
		l.put(s)
	}
	l.add(recording.Network, recording.Way, p.server.EndNs, arrived-(network-most))
	l.add(recording.Network, recording.Back, arrived-(network-most), arrived)
	for _, s := range p.outer {
		s.FromNs, s.ToNs = s.FromNs+shift, s.ToNs+shift
		switch {
		case s.FromNs >= arrived:
			l.put(s)
		case s.Actor == recording.Network && s.State == recording.Retransmit:
			l.lay(s)
		}
	}
	for _, s := range resent {
		l.lay(s)
	}
	if p.sendNs > 0 {
		l.lay(recording.Segment{
			Actor: recording.Client, State: recording.Send, FromNs: c.IntendedNs,
			ToNs: min(c.IntendedNs+p.sendNs, p.server.IntendedNs),
		})
	}
	segs := whole(l, c.IntendedNs, c.EndNs)
	for i := range segs {
		segs[i].CallID = c.ID
	}
	return c, segs
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// line is segments in order, disjoint.
type line []recording.Segment

func (l *line) add(actor, state string, from, to int64) {
	l.put(recording.Segment{Actor: actor, State: state, FromNs: from, ToNs: to})
}

func (l *line) put(s recording.Segment) {
	if s.ToNs > s.FromNs {
		*l = append(*l, s)
	}
}

// lay puts s over the parts of the way that it covers.
func (l *line) lay(s recording.Segment) {
	var out line
	for _, g := range *l {
		from, to := max(g.FromNs, s.FromNs), min(g.ToNs, s.ToNs)
		if from >= to || g.Actor != recording.Network || g.State == recording.Retransmit {
			out = append(out, g)
			continue
		}
		before, over, after := g, s, g
		before.ToNs, over.FromNs, over.ToNs, after.FromNs = from, from, to, to
		out.put(before)
		out.put(over)
		out.put(after)
	}
	*l = out
}

// whole makes segments a partition of [from, to): in order, cut to it, disjoint, equal neighbours joined, and what is
// missing unexplained.
func whole(segs []recording.Segment, from, to int64) []recording.Segment {
	segs = append([]recording.Segment(nil), segs...)
	sort.SliceStable(segs, func(i, j int) bool { return segs[i].FromNs < segs[j].FromNs })
	var l line
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
		l.put(s)
	}
	l.add(recording.Nobody, recording.Unexplained, at, to)
	return l
}

// retransmits are what the host of a recording sent again, by the client's end of the connection.
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
