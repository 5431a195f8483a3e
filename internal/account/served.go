package account

import (
	"slices"

	"slowpath/internal/recording"
)

// served is a call of slowpath itself as the kernel source saw it at the server: what the server's thread did while the call was in its socket.
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
			if p.Actor == Server {
				s.line = append(s.line, Segment{Server, p.State, e.TimeNs + p.FromNs, e.TimeNs + p.ToNs, p.Culprit, -1})
			}
		}
		out[e.Subject] = append(out[e.Subject], s)
	}
	return out
}

// layServed fills a call of the probe with what the server did by its own view of it, and of calls that it waited behind: work too short to
// be reported one by one, other than the line of the main thread. Where the view is this call's, what is left before it and after it is the way.
func (p *painter) layServed(cv *canvas, c recording.Call) {
	var own []served
	for _, i := range p.servedAt[c.Node].touching(c.IntendedNs, c.EndNs) {
		s := p.served[c.Node][i]
		line := s.line
		if s.Op == c.Op && s.from >= c.StartNs && s.to <= c.EndNs {
			own = append(own, s)
		} else {
			line = slices.Clone(line)
			for k := range line {
				if line[k].State == Exec { // for others it is busy with it
					line[k].State, line[k].Culprit = Busy, s.Op+" from "+s.Client+", slowpath itself"
				}
			}
		}
		cv.overlay(line)
	}
	if len(own) == 1 { // of two, on the kept connection and a fresh one, it is not known which is which
		cv.lay(Segment{Network, Out, c.StartNs, own[0].from, "", -1}, isOpen)
		cv.lay(Segment{Network, Back, own[0].to, c.EndNs, "", -1}, isOpen)
	}
}
