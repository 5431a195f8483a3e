package capture

import (
	"slices"

	"slowpath/internal/recording"
)

// acknowledgedText says how it is known that a request had arrived.
const acknowledgedText = "its kernel had acknowledged the request, its process had not answered"

// segments are the parts of a call, as far as its packets say whose they are. What passed between the request and the
// reply is the server's where the capture was made there, and also where its kernel acknowledged the request meanwhile.
// Else it may be the path's.
func (c *conn) segments(k call) []recording.Segment {
	way := c.node.wayNs()
	arrived, answered := k.toNs+way, k.firstNs-way
	if answered < arrived {
		arrived = (k.toNs + k.firstNs) / 2
		answered = arrived
	}
	between := recording.Segment{Actor: recording.Nobody, State: recording.Unexplained}
	switch {
	case k.blocking:
		between = recording.Segment{Actor: recording.Server, State: recording.AckWait}
	case k.ackNs > 0:
		between = recording.Segment{
			Actor: recording.Server, State: recording.Unexplained, Culprit: acknowledgedText,
		}
	case c.node.vantage == atServer || c.node.vantage == atBoth:
		between.Actor = recording.Server
	}
	between.FromNs, between.ToNs = arrived, answered
	segs := []recording.Segment{
		{Actor: recording.Network, State: recording.Out, FromNs: k.fromNs, ToNs: arrived},
		between,
		{Actor: recording.Network, State: recording.Back, FromNs: answered, ToNs: k.endNs},
	}
	for _, s := range k.shut { // the server could not send on
		segs = over(segs, recording.Segment{
			Actor: recording.Client, State: recording.Receive, FromNs: s.from, ToNs: s.to, Culprit: "closed window",
		}, func(p recording.Segment) bool { return p.State == recording.Back })
	}
	for _, s := range k.spans {
		segs = over(segs, recording.Segment{
			Actor: recording.Network, State: recording.Retransmit, FromNs: s.from, ToNs: s.to, Culprit: "segment",
		}, func(p recording.Segment) bool {
			return p.Culprit != acknowledgedText && p.Actor != recording.Client
		})
	}
	return slices.DeleteFunc(segs, func(s recording.Segment) bool { return s.ToNs <= s.FromNs })
}

// over puts a segment over those parts that it may take.
func over(segs []recording.Segment, s recording.Segment, may func(recording.Segment) bool) (out []recording.Segment) {
	for _, p := range segs {
		from, to := max(p.FromNs, s.FromNs), min(p.ToNs, s.ToNs)
		if to <= from || !may(p) {
			out = append(out, p)
			continue
		}
		before, within, after := p, s, p
		before.ToNs, within.FromNs, within.ToNs, after.FromNs = from, from, to, to
		out = append(out, before, within, after)
	}
	return out
}
