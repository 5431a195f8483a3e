package account

import (
	"slices"
	"sort"

	"slowpath/internal/recording"
)

// painter lays what the sources saw over the time of a call, surest first. Later layers only fill what is still open.
type painter struct {
	rec    *recording.Recording
	ledger *Ledger
	states map[string][]recording.Event // by node: what its main thread was doing, ordered by rank, then time
	tcp    map[int64]recording.TCPDetail
	hosted map[string]bool      // nodes whose main thread was watched
	resent map[path][][2]int64  // calls during which a segment was sent again, from send to reply
	again  map[string][]span    // by this end of a connection: what the kernel source saw TCP send again, at either end
	nodes  map[string]*tapped   // what the kernel source saw
	lines  map[string][]Segment // by node: of its main thread
	served map[string][]served  // by node: the probe's calls as the server saw them
	queues map[string]*queue    // by node: the probe's calls on its kept connection

	byTime     map[string]*timeIndex // of states
	suspectsAt *timeIndex
	resentAt   map[path]*timeIndex
	servedAt   map[string]*timeIndex
}

// rank orders the states of a main thread: one that is frozen is not throttled.
var rank = map[string]int{
	recording.KindFrozen: 0, recording.KindThrottled: 1, recording.KindBlocked: 2,
	recording.KindRunQueue: 3, recording.KindBusy: 4,
}

// path is a connection of the probe to a node.
type path struct{ node, conn string }

func newPainter(rec *recording.Recording, l *Ledger, nodes map[string]*tapped) *painter {
	p := &painter{
		rec: rec, ledger: l, states: map[string][]recording.Event{}, tcp: map[int64]recording.TCPDetail{},
		hosted: map[string]bool{}, resent: map[path][][2]int64{}, again: map[string][]span{},
		byTime: map[string]*timeIndex{}, resentAt: map[path]*timeIndex{},
	}
	p.nodes, p.lines = nodes, l.exact(rec, nodes)
	p.queues = queues(rec)
	p.served, p.servedAt = servedCalls(rec), map[string]*timeIndex{}
	for node, ss := range p.served {
		p.servedAt[node] = newTimeIndex(len(ss), func(i int) (int64, int64) { return ss[i].from, ss[i].to })
	}
	for _, e := range rec.Events {
		switch {
		case e.Source == recording.SourceHost:
			if _, ok := rank[e.Kind]; ok && !p.exactly(e) {
				p.states[e.Subject] = append(p.states[e.Subject], e)
			}
		case e.Source == recording.SourceProbe && e.Kind == recording.KindTCPInfo:
			d := recording.DetailOf[recording.TCPDetail](e)
			p.tcp[d.CallStartNs] = d
			if d.RetransDuring > 0 {
				k := path{e.Subject, d.Conn}
				p.resent[k] = append(p.resent[k], [2]int64{d.CallStartNs, e.TimeNs})
			}
		case e.Source == recording.SourceTap && e.Kind == recording.KindRetransmit:
			if d := recording.DetailOf[recording.RetransmitDetail](e); !d.Spurious() {
				p.again[d.Client] = append(p.again[d.Client], span{e.TimeNs, e.TimeNs + e.DurationNs})
			}
		}
	}
	for node, es := range p.states {
		sort.SliceStable(es, func(i, j int) bool { return rank[es[i].Kind] < rank[es[j].Kind] })
		p.states[node] = es
		p.byTime[node] = newTimeIndex(len(es), func(i int) (int64, int64) {
			return es[i].TimeNs, es[i].TimeNs +
				es[i].DurationNs
		})
	}
	for k, spans := range p.resent {
		p.resentAt[k] = newTimeIndex(len(spans), func(i int) (int64, int64) { return spans[i][0], spans[i][1] })
	}
	p.suspectsAt = newTimeIndex(len(l.Suspects), func(i int) (int64, int64) {
		return l.Suspects[i].FromNs,
			l.Suspects[i].ToNs
	})
	for _, node := range rec.Nodes() {
		p.hosted[node] = len(rec.Series(recording.SourceHost, node, "main.run_ns")) > 0
	}
	return p
}

// paint makes the account of one call whose excess is known.
func (p *painter) paint(c recording.Call, usualNs, excessNs int64) Account {
	a := Account{Call: c, UsualNs: usualNs, ExcessNs: excessNs}
	cv := newCanvas(c.IntendedNs, c.EndNs)
	p.lay(cv, c)
	p.layBehind(cv, c)
	if c.Source == recording.SourceProbe {
		p.layUsual(cv, c, usualNs)
	}
	a.Segments = cv.segments()
	return a
}

// lay puts all that was seen of the time of a call over it, other than what calls before it waited for.
func (p *painter) lay(cv *canvas, c recording.Call) {
	for _, s := range p.rec.Segments[c.ID] {
		if t := p.nodes[c.Node]; t != nil && s.Actor == Server && s.Culprit == "" {
			s.Culprit = t.cgroups[s.State]
		}
		cv.lay(Segment{s.Actor, s.State, s.FromNs, s.ToNs, s.Culprit, -1}, isOpen)
	}
	states := p.byTime[c.Node].touching(c.IntendedNs, c.EndNs)
	for _, i := range states {
		if p.states[c.Node][i].Kind != recording.KindBusy {
			p.layState(cv, p.states[c.Node][i])
		}
	}
	cv.overlay(p.lines[c.Node])
	if own(c) {
		p.layServed(cv, c)
	}
	for _, i := range states {
		// a stretch of short work is no single event to the kernel source
		if p.states[c.Node][i].Kind == recording.KindBusy {
			p.layState(cv, p.states[c.Node][i])
		}
	}
	p.accuse(cv, c)
	if c.Source == recording.SourceProbe {
		p.layRetransmits(cv, c)
	}
}

// isOpen: nothing is known of this time yet.
func isOpen(s Segment) bool { return s.State == Unexplained }

// waitsForServer: time in which a server process that does not run can be what is waited for. A TCP connect is answered
// by the kernel, and the caller's own run queue is its own.
func waitsForServer(s Segment) bool {
	return s.State == Unexplained || s.State == PoolWait || s.State == Handshake || s.State == TLS
}

func (p *painter) layState(cv *canvas, e recording.Event) {
	d := recording.DetailOf[recording.ThreadDetail](e)
	to := e.TimeNs + e.DurationNs
	if d.Share > 0 && d.Share < 1 {
		// Only a part of the stretch was in this state; where in it is not known.
		from := max(e.TimeNs, cv.from)
		to = from + int64(float64(min(to, cv.to)-from)*d.Share)
	}
	culprit := ""
	switch e.Kind {
	case recording.KindThrottled, recording.KindFrozen:
		culprit = d.Cgroup
	case recording.KindBlocked:
		culprit = d.Syscall
	}
	cv.lay(Segment{Server, e.Kind, e.TimeNs, to, culprit, -1}, waitsForServer)
}

// accuse names culprits: for stretches in which the loop was seen busy or blocked, and where nobody watched the host,
// for time that is still open.
func (p *painter) accuse(cv *canvas, c recording.Call) {
	for _, i := range p.suspectsAt.touching(c.IntendedNs, c.EndNs) {
		s := p.ledger.Suspects[i]
		if s.Merged || s.Source == recording.SourceTap || s.Node != c.Node || s.FromNs >= c.EndNs ||
			s.ToNs <= c.IntendedNs {
			continue
		}
		if s.Kind == KindCommand && s.Stopped && !s.Busy {
			continue // it was itself held up
		}
		// Of a job that ran Count times in the window, a call can have waited for several.
		all := s.DurationNs * int64(max(s.Count, 1))
		left := all
		left -= cv.accuse(s.FromNs, s.ToNs, left, i, s, func(g Segment) bool {
			return g.Suspect < 0 && g.Actor == Server && (g.State == Busy || g.State == Blocked &&
				s.Kind != KindCommand)
		})
		if p.watched(c) && left == all && s.DurationNs > SeenBusyNs && !naps(s.Command) && !cv.has(Server, RunQueue) {
			// so long a stretch would have been seen by the host source, but for one that is cut up by waits for a CPU
			continue
		}
		cv.accuse(s.FromNs, s.ToNs, left, i, s, waitsForServer)
	}
}

// exactly reports whether the kernel source tells the same better than an event of the host, whose states are sampled.
// Kernels that do not say which task is throttled have it run as one that waits for a CPU.
func (p *painter) exactly(e recording.Event) bool {
	line, seen := p.lines[e.Subject]
	if !seen || e.Kind == recording.KindBusy {
		return false
	}
	return e.Kind != recording.KindThrottled || slices.ContainsFunc(line,
		func(s Segment) bool { return s.State == Throttled })
}

// watched reports whether the main thread was, so that a long stretch of work during a call cannot have gone unseen.
func (p *painter) watched(c recording.Call) bool { return p.hosted[c.Node] || p.lines[c.Node] != nil }

// SeenBusyNs: the host source reports every stretch of at least 10 ms on the CPU; with its sampling interval, what is
// longer than this cannot have gone unseen.
const SeenBusyNs = int64(20e6)

// layRetransmits gives open time to the network where the socket counted retransmissions during the call, or during one
// before it on the same connection for which it waited. A server that does not run makes no retransmissions: its kernel
// acknowledges what arrives.
func (p *painter) layRetransmits(cv *canvas, c recording.Call) {
	own := p.tcp[c.StartNs]
	if own.SynRetransDuring > 0 {
		cv.replace(Segment{Actor: Network, State: Retransmit, Culprit: "SYN", Suspect: -1},
			func(s Segment) bool { return s.State == Dial && s.Culprit == "connect" })
	}
	if c.Conn == "fresh" { // a connection of its own: what others sent again is not its matter
		if own.RetransDuring > 0 {
			cv.lay(Segment{Network, Retransmit, c.StartNs, c.EndNs, "segment", -1}, waitsForServer)
		}
		return
	}
	k := path{c.Node, c.Conn}
	for _, i := range p.resentAt[k].touching(c.IntendedNs, c.EndNs) {
		r := p.resent[k][i]
		cv.lay(Segment{Network, Retransmit, r[0], r[1], "segment", -1}, waitsForServer)
	}
	for _, s := range p.again[own.Local] { // the probe's socket does not count what the server sent again
		cv.lay(Segment{Network, Retransmit, s.from, s.to, "segment", -1}, waitsForServer)
	}
}

// layUsual explains the usual part of the open time: the round trip by the path's TCP connect, the rest as execution.
func (p *painter) layUsual(cv *canvas, c recording.Call, usualNs int64) {
	usual, _ := p.ledger.Path(c.Node, "fresh")
	rtt := min(usual.ConnectMinNs, usualNs)
	if d, ok := p.tcp[c.StartNs]; ok && d.MinRTTNs > 0 && rtt == 0 {
		rtt = min(d.MinRTTNs, usualNs)
	}
	if rtt == 0 {
		return
	}
	cv.take(rtt/2, Segment{Actor: Network, State: Out, Suspect: -1})
	cv.takeLast(rtt/2, Segment{Actor: Network, State: Back, Suspect: -1})
	cv.takeLast(usualNs-rtt, Segment{Actor: Server, State: Exec, Suspect: -1})
}
