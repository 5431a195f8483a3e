package account

import "slowpath/internal/recording"

// servedCalls are calls of slowpath itself as the tap saw them at the server, by node.
type servedCalls struct {
	views map[string][]servedCall
	index map[string]*timeIndex
}

// servedCall is what the server's thread did while a call of slowpath was in its socket.
type servedCall struct {
	recording.ServedDetail
	from, to int64
	line     []Segment // by the server's states; time in which it slept for want of work is left out
}

func readServedCalls(rec *recording.Recording) *servedCalls {
	v := &servedCalls{map[string][]servedCall{}, map[string]*timeIndex{}}
	for _, e := range rec.EventsOf(recording.SourceTap, "", recording.KindServed) {
		s := servedCall{recording.DetailOf[recording.ServedDetail](e), e.TimeNs, e.TimeNs + e.DurationNs, nil}
		for _, p := range s.Parts {
			if p.Actor == Server || p.Actor == recording.Proxy {
				s.line = append(s.line, Segment{
					p.Actor, p.State, e.TimeNs + p.FromNs, e.TimeNs + p.ToNs, p.Culprit, -1,
				})
			}
		}
		v.views[e.Subject] = append(v.views[e.Subject], s)
	}
	for node, ss := range v.views {
		v.index[node] = newTimeIndex(len(ss), func(i int) (int64, int64) { return ss[i].from, ss[i].to })
	}
	return v
}

// during are the views of the time of a call whose end of the connection is local, empty where unknown: own is the
// call's own view. It is nil where several may be its own, on the kept connection and fresh ones.
func (v *servedCalls) during(c recording.Call, local string) (lines [][]Segment, own *servedCall) {
	candidates := 0
	for _, i := range v.index[c.Node].touching(c.IntendedNs, c.EndNs) {
		s := &v.views[c.Node][i]
		if s.Op == c.Op && s.from >= c.StartNs && s.to <= c.EndNs && (local == "" || s.Client == local) {
			own = s
			candidates++
			lines = append(lines, s.line)
		} else if s.reaches(c.IntendedNs, c.EndNs) {
			lines = append(lines, s.forOthers(s.Client == local))
		}
	}
	if candidates != 1 {
		own = nil
	}
	return lines, own
}

// reaches reports whether its line reaches into [fromNs, toNs).
func (s *servedCall) reaches(fromNs, toNs int64) bool {
	n := len(s.line)
	return n > 0 && s.line[0].FromNs < toNs && s.line[n-1].ToNs > fromNs
}

// forOthers is its line as calls felt it that waited meanwhile. For them the server was busy with it; that the server
// kept it waiting they felt on the same connection only.
func (s *servedCall) forOthers(sameConn bool) []Segment {
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
