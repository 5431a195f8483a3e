package watch

// updateFailures emits failover-started when a master with slots is marked as failed (the flag fail, not only fail?),
// and failover-ended when that ends without a promotion: no node marks it any more. A node that still marks it after
// others do not is late, so only the change of a view from "ok" to "failed" starts a failover.
func (u *viewUpdate) updateFailures() {
	view := u.views[u.viewer]
	for id := range view.failed {
		m := u.members[id]
		if m == nil || m.failing || m.slots == 0 || u.before != nil && u.before.failed[id] {
			continue
		}
		m.failing = true
		u.emit(Event{Kind: FailoverStarted, Slots: u.rangesOf(m), From: m.addr, Node: m.id})
	}
	for _, m := range u.members {
		if !m.failing || view.failed[m.id] {
			continue
		}
		if views := u.failedAccordingTo(m.id); len(views) > 0 {
			for _, id := range views {
				u.recheck[id] = true
			}
			continue
		}
		m.failing = false
		u.emit(Event{Kind: FailoverEnded, Slots: u.rangesOf(m), From: m.addr, To: m.addr, Node: m.id})
	}
}

// failedAccordingTo lists the nodes whose last view marks a node as failed.
func (st *mapState) failedAccordingTo(id string) (by []string) {
	for viewer, view := range st.views {
		if view.failed[id] {
			by = append(by, viewer)
		}
	}
	return by
}
