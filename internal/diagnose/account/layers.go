package account

import (
	"slices"

	"slowpath/internal/recording"
)

// painter fills the timeline of a call with what the sources saw, the surest first. Later layers only fill what is
// still open, or name what the server worked on.
type painter struct {
	rec        *recording.Recording
	latencies  *latencies
	threads    map[string]*mainThread // by node
	exact      map[string][]Segment   // by node
	suspects   []Suspect
	suspectsAt *timeIndex
	states     *hostStates
	views      *servedCalls
	sockets    *probeSockets
	queues     map[string]*probeQueue // by node
	proxied    map[string]bool        // nodes of proxies of which the server behind them is watched
}

func newPainter(rec *recording.Recording, all *latencies, threads map[string]*mainThread, suspects []Suspect,
	exact map[string][]Segment, h *hops,
) *painter {
	proxied := proxiedNodes(rec, h)
	return &painter{
		rec: rec, latencies: all, threads: threads, exact: exact, suspects: suspects,
		suspectsAt: newTimeIndex(len(suspects), func(i int) (int64, int64) {
			return suspects[i].FromNs, suspects[i].ToNs
		}),
		states: readHostStates(rec, threads, proxied), views: readServedCalls(rec), sockets: readProbeSockets(rec),
		queues: probeQueues(rec), proxied: proxied,
	}
}

// proxiedNodes are those whose process was seen to forward calls, where the server behind it was watched.
func proxiedNodes(rec *recording.Recording, h *hops) map[string]bool {
	out := map[string]bool{}
	for _, c := range rec.Calls {
		if !out[c.Node] && h.hidesServer(c.Node) && slices.ContainsFunc(rec.SegmentsOf(c.ID), forwards) {
			out[c.Node] = true
		}
	}
	return out
}

func forwards(s recording.Segment) bool { return s.Actor == recording.Proxy }

// partition is the time of one slow call.
func (p *painter) partition(c recording.Call, baselineNs int64) []Segment {
	t := newTimeline(c.IntendedNs, c.EndNs)
	p.putSeen(t, c)
	p.putQueued(t, c)
	if c.Source == recording.SourceProbe {
		p.putBaseline(t, c, baselineNs)
	}
	return t.segments()
}

// putSeen puts all that was seen of the time of a call on its timeline, other than what calls before it waited for.
func (p *painter) putSeen(t *timeline, c recording.Call) {
	p.putMeasured(t, c)
	stopped, busy := p.states.during(c.Node, c.IntendedNs, c.EndNs)
	open := waitsForServer
	if p.proxied[c.Node] {
		open = waitsBehindProxy
	}
	for _, s := range stopped {
		t.put(s, open)
	}
	t.overlay(p.exact[c.Node], exactly)
	t.overlay(p.exact[c.Node], p.beforeAcks)
	if c.Source == recording.SourceProbe || c.Source == recording.SourceLoad {
		p.putServerView(t, c)
	}
	for _, s := range busy { // not with stopped: many short commands in a row are no work to the tap
		t.put(s, open)
	}
	p.putSuspects(t, c)
	if c.Source == recording.SourceProbe {
		p.putRetransmissions(t, c)
	}
}

// isOpen: nothing is known of this time yet.
func isOpen(s Segment) bool { return s.State == Unexplained }

// waitsForServer: time in which a server process that does not run can be what is waited for. A TCP connect is answered
// by the kernel, and the caller's own run queue is its own.
func waitsForServer(s Segment) bool {
	return s.State == Unexplained || s.State == PoolWait || s.State == Handshake || s.State == TLS
}

// exactly is the rule for what the tap saw of the main thread: it takes time in which the call can have waited for the
// server, and names what the server worked on.
func exactly(present, exact Segment) (Segment, bool) {
	switch {
	case waitsForServer(present):
		return exact, true
	case present.Actor == Server && (present.State == Busy || present.State == Exec) && present.Suspect < 0 &&
		exact.Suspect >= 0:
		present.Culprit, present.Suspect = exact.Culprit, exact.Suspect
		return present, true
	}
	return present, false
}

// beforeAcks is the rule for the wait for acknowledgements: the main thread reads them, so that work of it that is as
// long as a slow call holds them up.
func (p *painter) beforeAcks(present, exact Segment) (Segment, bool) {
	return exact, present.State == AckWait && exact.State == Busy && exact.Ns() >= p.latencies.thresholdNs
}

// whereOpen is the rule for evidence that only fills open time.
func whereOpen(present, evidence Segment) (Segment, bool) { return evidence, isOpen(present) }

// putMeasured: what the source of the call measured itself.
func (p *painter) putMeasured(t *timeline, c recording.Call) {
	for _, s := range p.rec.SegmentsOf(c.ID) {
		if th := p.threads[c.Node]; th != nil && s.Actor == Server && s.Culprit == "" {
			s.Culprit = th.cgroups[s.State]
		}
		t.put(Segment{s.Actor, s.State, s.FromNs, s.ToNs, s.Culprit, -1}, isOpen)
	}
}

// putServerView: what the server did by its own view of a call of slowpath, and of calls that it waited behind. This
// has work too short to be reported one by one, which the exact timeline lacks. Open time before and after the call's
// own view is the network's.
func (p *painter) putServerView(t *timeline, c recording.Call) {
	lines, own := p.views.during(c, p.sockets.info(c).Local)
	for _, line := range lines {
		t.overlay(line, exactly)
	}
	if own != nil {
		t.put(Segment{Network, Out, c.StartNs, own.from, "", -1}, isOpen)
		t.put(Segment{Network, Back, own.to, c.EndNs, "", -1}, isOpen)
	}
}

// waitsBehindProxy: time in which the server behind a proxy can be what is waited for.
func waitsBehindProxy(s Segment) bool { return s.Actor == recording.Proxy || waitsForServer(s) }

// putSuspects names culprits: for time in which the loop was seen busy or blocked, and where the main thread was not
// watched, for time that is still open. Where the thread was blocked in a system call that is known, only what blocks
// it can be the culprit, and no work. The tap's own suspects are in the exact timeline. The records of a server behind
// a proxy, whose thread nobody watched, say what the proxy waited for, and not what the proxy did itself.
func (p *painter) putSuspects(t *timeline, c recording.Call) {
	proxied, open := p.proxied[c.Node], waitsForServer
	if proxied {
		open = waitsBehindProxy
	}
	watched := !proxied && (p.states.watched[c.Node] || p.exact[c.Node] != nil)
	for _, i := range p.suspectsAt.touching(c.IntendedNs, c.EndNs) {
		s := &p.suspects[i]
		heldUp := s.Kind == KindCommand && s.Stopped && !s.Busy
		if s.Merged || s.Source == recording.SourceTap || s.Node != c.Node || heldUp {
			continue
		}
		// Of a job that ran Count times in the window, a call can have waited for several.
		all := s.DurationNs * int64(max(s.Count, 1))
		found := t.attribute(*s, i, all, func(g Segment) bool {
			if proxied || g.Suspect >= 0 || g.Actor != Server {
				return false
			}
			return g.State == Busy ||
				g.State == Blocked && (s.state() == Blocked || g.Culprit == "" && s.Kind != KindCommand)
		})
		if watched && found == 0 && s.DurationNs > MinSeenBusyNs && !sleeps(s.Command) && !t.has(Server, RunQueue) {
			// Work this long would have been seen by the host source, unless waits for a CPU cut it up.
			continue
		}
		t.attribute(*s, i, all-found, open)
	}
}

// putRetransmissions gives time that waits for the server to the network where TCP retransmitted meanwhile. A server
// that does not run makes no retransmissions: its kernel acknowledges what arrives.
func (p *painter) putRetransmissions(t *timeline, c recording.Call) {
	if p.sockets.info(c).SynRetransDuring > 0 {
		t.replace(Segment{Actor: Network, State: Retransmit, Culprit: "SYN", Suspect: -1},
			func(s Segment) bool { return s.State == Dial && s.Culprit == "connect" })
	}
	for _, r := range p.sockets.retransmitted(c) {
		t.put(Segment{Network, Retransmit, r.from, r.to, "segment", -1}, waitsForServer)
	}
}

// putQueued fills the time in which a call of the probe waited for those before it on its connection with what those
// waited for: the network, retransmissions, and that the probe read their replies late.
func (p *painter) putQueued(t *timeline, c recording.Call) {
	q := p.queues[c.Node]
	if q == nil || !mayQueue(c) || c.StartNs <= c.IntendedNs {
		return
	}
	t.overlay(q.before(c, p.waitsOf), whereOpen)
}

// waitsOf is what a call waited for from its send to its reply, as those felt it that were queued behind it.
func (p *painter) waitsOf(c recording.Call) []Segment {
	c.IntendedNs = c.StartNs
	t := newTimeline(c.StartNs, c.EndNs)
	p.putSeen(t, c)
	var out []Segment
	for _, s := range t.segments() {
		switch {
		case isOpen(s):
			continue
		case s.Actor == Server && s.State == Exec:
			s.State, s.Culprit = Busy, c.Op+", slowpath itself"
		}
		out = append(out, s)
	}
	return out
}

// putBaseline explains as much of the open time as the call takes while nothing is wrong: the round trip by the path's
// TCP connect, the rest as execution.
func (p *painter) putBaseline(t *timeline, c recording.Call, baselineNs int64) {
	fresh, _ := findPath(p.latencies.paths, c.Node, "fresh")
	rtt := min(fresh.ConnectMinNs, baselineNs)
	if seen := p.sockets.info(c).MinRTTNs; seen > 0 && rtt == 0 {
		rtt = min(seen, baselineNs)
	}
	if rtt == 0 {
		return
	}
	t.putFirst(rtt/2, Segment{Actor: Network, State: Out, Suspect: -1}, isOpen)
	t.putLast(rtt/2, Segment{Actor: Network, State: Back, Suspect: -1}, isOpen)
	t.putLast(baselineNs-rtt, Segment{Actor: Server, State: Exec, Suspect: -1}, isOpen)
}
