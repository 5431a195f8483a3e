package account

import (
	"sort"

	"slowpath/internal/recording"
)

// painter lays what the sources saw over the time of a call, surest first. Later layers only fill what is still open.
type painter struct {
	rec    *recording.Recording
	ledger *Ledger
	states map[string][]recording.Event // by node: what its main thread was doing, ordered by rank, then time
	tcp    map[int64]recording.TCPDetail
	hosted map[string]bool // nodes whose main thread was watched
}

// rank orders the states of a main thread: one that is frozen is not throttled.
var rank = map[string]int{recording.KindFrozen: 0, recording.KindThrottled: 1, recording.KindBlocked: 2, recording.KindRunQueue: 3, recording.KindBusy: 4}

func newPainter(rec *recording.Recording, l *Ledger) *painter {
	p := &painter{rec: rec, ledger: l, states: map[string][]recording.Event{}, tcp: map[int64]recording.TCPDetail{}, hosted: map[string]bool{}}
	for _, e := range rec.Events {
		switch {
		case e.Source == recording.SourceHost:
			if _, ok := rank[e.Kind]; ok {
				p.states[e.Subject] = append(p.states[e.Subject], e)
			}
		case e.Source == recording.SourceProbe && e.Kind == recording.KindTCPInfo:
			d := recording.DetailOf[recording.TCPDetail](e)
			p.tcp[d.CallStartNs] = d
		}
	}
	for node, es := range p.states {
		sort.SliceStable(es, func(i, j int) bool { return rank[es[i].Kind] < rank[es[j].Kind] })
		p.states[node] = es
	}
	for _, node := range rec.Nodes() {
		p.hosted[node] = len(rec.Series(recording.SourceHost, node, "main.run_ns")) > 0
	}
	return p
}

// paint makes the account of one call.
func (p *painter) paint(c recording.Call, usualNs int64) Account {
	a := Account{Call: c, UsualNs: usualNs, ExcessNs: c.EndNs - c.IntendedNs - usualNs}
	cv := newCanvas(c.IntendedNs, c.EndNs)
	for _, s := range p.rec.Segments[c.ID] {
		cv.lay(Segment{s.Actor, s.State, s.FromNs, s.ToNs, s.Culprit, -1}, isOpen)
	}
	for _, e := range p.states[c.Node] {
		p.layState(cv, e)
	}
	p.accuse(cv, c)
	if d, ok := p.tcp[c.StartNs]; ok {
		p.layRetransmits(cv, d)
	}
	p.layUsual(cv, c, usualNs)
	a.Segments = cv.segments()
	return a
}

// isOpen: nothing is known of this time yet.
func isOpen(s Segment) bool { return s.State == Unexplained }

// waitsForServer: time in which a server process that does not run can be what is waited for. A TCP connect is answered by the
// kernel, and the caller's own run queue is its own.
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

// accuse names culprits: for stretches in which the loop was seen busy or blocked, and where nobody watched the host, for time
// that is still open.
func (p *painter) accuse(cv *canvas, c recording.Call) {
	for i, s := range p.ledger.Suspects {
		if s.Node != c.Node || s.FromNs >= c.EndNs || s.ToNs <= c.IntendedNs {
			continue
		}
		// Of a job that ran Count times in the window, a call can have waited for several.
		all := s.DurationNs * int64(max(s.Count, 1))
		left := all
		left -= cv.accuse(s.FromNs, s.ToNs, left, i, s, func(g Segment) bool {
			return g.Suspect < 0 && g.Actor == Server && (g.State == Busy || g.State == Blocked && s.Kind != KindCommand)
		})
		if p.hosted[c.Node] && left == all && s.DurationNs > SeenBusyNs {
			continue // so long a stretch would have been seen by the host source
		}
		cv.accuse(s.FromNs, s.ToNs, left, i, s, waitsForServer)
	}
}

// SeenBusyNs: the host source reports every stretch of at least 10 ms on the CPU; with its sampling interval, what is longer than
// this cannot have gone unseen.
const SeenBusyNs = int64(20e6)

// layRetransmits gives open time to the network where the socket counted retransmissions during the call. A server that does not
// run makes no retransmissions: its kernel acknowledges what arrives.
func (p *painter) layRetransmits(cv *canvas, d recording.TCPDetail) {
	if d.SynRetransDuring > 0 {
		cv.replace(Segment{Actor: Network, State: Retransmit, Culprit: "SYN", Suspect: -1}, func(s Segment) bool { return s.State == Dial && s.Culprit == "connect" })
	}
	if d.RetransDuring > 0 {
		cv.replace(Segment{Actor: Network, State: Retransmit, Culprit: "segment", Suspect: -1}, waitsForServer)
	}
}

// layUsual explains the usual part of the open time: the round trip by the path's TCP connect, the rest as execution.
func (p *painter) layUsual(cv *canvas, c recording.Call, usualNs int64) {
	path, _ := p.ledger.Path(c.Node, "fresh")
	rtt := min(path.ConnectMinNs, usualNs)
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
