package account

import "slowpath/internal/recording"

// served is a call of slowpath itself as the kernel source saw it at the server: what the server's thread did while the
// call was in its socket.
type served struct {
	recording.ServedDetail
	from, to int64
	line     []Segment // by the server's states; time in which it slept for want of work is left out
}

// servedCalls collects them by node.
func servedCalls(rec *recording.Recording) map[string][]served {
	out := map[string][]served{}
	for _, e := range rec.EventsOf(recording.SourceTap, "", recording.KindServed) {
		s := served{recording.DetailOf[recording.ServedDetail](e), e.TimeNs, e.TimeNs + e.DurationNs, nil}
		for _, p := range s.Parts {
			if p.Actor == Server || p.Actor == recording.Proxy {
				s.line = append(s.line, Segment{
					p.Actor, p.State, e.TimeNs + p.FromNs, e.TimeNs + p.ToNs, p.Culprit,
					-1,
				})
			}
		}
		out[e.Subject] = append(out[e.Subject], s)
	}
	return out
}

// layServed fills a call of the probe with what the server did by its own view of it, and of calls that it waited
// behind: work too short to be reported one by one, other than the line of the main thread. Where the view is this
// call's, what is left before it and after it is the way.
func (p *painter) layServed(cv *canvas, c recording.Call) {
	local := p.tcp[c.StartNs].Local // known of slow calls on the kept connection
	var own []served
	for _, i := range p.servedAt[c.Node].touching(c.IntendedNs, c.EndNs) {
		s := p.served[c.Node][i]
		if s.Op == c.Op && s.from >= c.StartNs && s.to <= c.EndNs && (local == "" || s.Client == local) {
			own = append(own, s)
			cv.overlay(s.line)
		} else {
			cv.overlay(s.forOthers(s.Client == local))
		}
	}
	if len(own) == 1 { // of several, on the kept connection and fresh ones, it is not known which is which
		cv.lay(Segment{Network, Out, c.StartNs, own[0].from, "", -1}, isOpen)
		cv.lay(Segment{Network, Back, own[0].to, c.EndNs, "", -1}, isOpen)
	}
}

// forOthers is its line as calls felt it that waited meanwhile. For them the server was busy with it; that it was kept
// waiting they felt on the same connection only.
func (s served) forOthers(sameConn bool) []Segment {
	var out []Segment
	for _, g := range s.line {
		switch {
		case g.State == Exec:
			g.State, g.Culprit = Busy, s.Op+" from "+s.Client+", slowpath itself"
		case (g.State == Withheld || g.State == recording.Forward) && !sameConn:
			continue
		}
		out = append(out, g)
	}
	return out
}
