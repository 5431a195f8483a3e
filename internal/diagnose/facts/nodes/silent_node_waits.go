package nodes

import (
	"encoding/json"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/recording"
)

// settleNs is how long after a takeover was seen callers may still be about to switch: the other nodes hear of it
// within milliseconds, the server source sees it within its second, and a call that waits then may do so for another.
// Bound: slowpath, PollIntervalNs, and a second for calls under way.
const settleNs = 2 * int64(facts.PollIntervalNs)

// SilentNodeWaits is who waits for a silent node in a stretch of time.
type SilentNodeWaits struct {
	// Ns is the time that they waited in nanoseconds, each connection for itself.
	Ns int64
	// Callers are the numbers of waiting connections by caller.
	Callers facts.NameCounts
	// RequestsUnread says that their requests were seen unread in the server's sockets.
	RequestsUnread bool
	// Dialled is the number of connections that were made to the node in that time.
	Dialled int
	// GivenUp is the number of connections that their client closed without an answer.
	GivenUp int
	// LongestNs is the longest wait in nanoseconds.
	LongestNs int64
	// Lasting says that some waited to the end of the stretch.
	Lasting bool
}

// WaitsAfterTakeover is who still waits for an old master when others have its slots, and had the time to report it.
func WaitsAfterTakeover(n *facts.Node, t Takeover) SilentNodeWaits {
	if t.Pending {
		return SilentNodeWaits{}
	}
	w := facts.Span{FromNs: t.TakenNs + settleNs, ToNs: t.BackNs}
	if t.TakenNs == 0 { // so it was before the watch
		w.FromNs = n.StartNs
	}
	if t.BackNs == 0 {
		w.ToNs = n.EndNs
	}
	s := SilentNodeWaits{Callers: facts.NameCounts{}}
	addUnread(n, w, &s)
	addConns(n, w, &s)
	return s
}

// BlockedNs is the time in nanoseconds that callers lost in a stretch in which the node was silent: all of it on each
// connection that they had in use when it began. A call that is retried at once waits nowhere, but its caller does not
// have what it asked for.
func BlockedNs(n *facts.Node, w facts.Span) (ns int64) {
	for _, c := range caller.ClientCallers(n) {
		used := 0
		for _, k := range c.Conns {
			if k.AppCalls() > 0 && k.OpenNs < w.FromNs && (k.CloseNs == 0 || k.CloseNs >= w.FromNs) {
				used++
			}
		}
		ns += int64(used) * (w.ToNs - w.FromNs)
	}
	s := SilentNodeWaits{Callers: facts.NameCounts{}}
	addUnread(n, w, &s)
	return max(ns, s.Ns)
}

// addUnread adds those whose requests are unread in the server's sockets.
func addUnread(n *facts.Node, w facts.Span, s *SilentNodeWaits) {
	var before []recording.Unread
	servers, own, at := caller.Servers(n.Case), hosts.OwnPIDs(n.Case), w.FromNs
	count := func(to int64) {
		for _, u := range before {
			if servers[u.PID] || own[u.PID] || caller.IsServerProcess(u.Comm) || to <= at {
				continue
			}
			name := u.Host
			if u.PID != 0 {
				name = hosts.ProcessName(n.Case, u.PID, u.Comm)
			}
			s.RequestsUnread = true
			s.Ns += int64(u.Connections) * (to - at)
			s.LongestNs = max(s.LongestNs, to-at)
			s.Lasting = s.Lasting || to == w.ToNs
			s.Callers[name] = max(s.Callers[name], u.Connections)
		}
		at = max(at, to)
	}
	for _, snap := range n.Rec.Snapshots {
		if snap.Source != recording.SourceHost || snap.Subject != n.Address || snap.Name != recording.SnapshotUnread {
			continue
		}
		count(min(snap.TimeNs, w.ToNs))
		before = nil
		_ = json.Unmarshal([]byte(snap.Body), &before) // a damaged snapshot is as good as none
	}
	count(w.ToNs)
}

// addConns adds those whose connections the tap saw: made after the takeover and never answered, or closed
// while a call waited.
func addConns(n *facts.Node, w facts.Span, s *SilentNodeWaits) {
	for _, c := range caller.ClientCallers(n) {
		for _, k := range c.Conns {
			end := k.CloseNs
			if end == 0 || end > w.ToNs {
				end = w.ToNs
			}
			switch {
			case k.OpenNs >= w.FromNs && k.OpenNs < w.ToNs && k.Calls == 0:
				s.Dialled++
				s.addWait(c, k.OpenNs, end)
				s.Lasting = s.Lasting || end == w.ToNs
			case k.CloseNs > w.FromNs && k.ClosedWaiting() && k.CloseNs-k.IdleNs >= w.FromNs-settleNs:
				s.addWait(c, max(w.FromNs, k.CloseNs-k.IdleNs), end)
			default:
				continue
			}
			if k.CloseNs > 0 && k.ClosedBy == recording.Client {
				s.GivenUp++
			}
		}
	}
	for _, one := range connection.UnansweredRequests(n) {
		if one.Retransmits >= connection.UnansweredRetransmits && one.ToNs > w.FromNs &&
			one.SentNs >= w.FromNs-settleNs {
			s.Ns += one.ToNs - max(one.SentNs, w.FromNs)
			s.LongestNs = max(s.LongestNs, one.ToNs-one.SentNs)
			s.Callers[one.Caller]++
		}
	}
}

// addWait adds the wait of one connection.
func (s *SilentNodeWaits) addWait(c *caller.Caller, from, to int64) {
	if to <= from {
		return
	}
	s.Ns += to - from
	s.LongestNs = max(s.LongestNs, to-from)
	s.Callers[c.Name]++
}
