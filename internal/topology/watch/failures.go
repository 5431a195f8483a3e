package watch

// judgeFailures tells when the cluster holds a master with slots for failed (the flag fail, not merely fail?), and when
// that has ended without a promotion: no node holds it for failed any more. A node that still says so after others do
// not is late, so only the change of a view from "well" to "failed" starts a failover.
func (n *absorption) judgeFailures() {
	mine := n.sights[n.viewer]
	for id := range mine.failed {
		m := n.members[id]
		if m == nil || m.failing || m.slots == 0 || n.before != nil && n.before.failed[id] {
			continue
		}
		m.failing = true
		n.tell(Event{Kind: FailoverStarted, Slots: n.rangesOf(m), From: m.addr, Node: m.id})
	}
	for _, m := range n.members {
		if !m.failing || mine.failed[m.id] {
			continue
		}
		if by := n.accusers(m.id); len(by) > 0 {
			for _, id := range by {
				n.doubts[id] = true
			}
			continue
		}
		m.failing = false
		n.tell(Event{Kind: FailoverEnded, Slots: n.rangesOf(m), From: m.addr, To: m.addr, Node: m.id})
	}
}

// accusers are the nodes in whose last view the node has failed.
func (a *Atlas) accusers(id string) (by []string) {
	for viewer, s := range a.sights {
		if s.failed[id] {
			by = append(by, viewer)
		}
	}
	return by
}
