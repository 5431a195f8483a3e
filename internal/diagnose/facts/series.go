package facts

import (
	"slowpath/internal/diagnose/account"
	"slowpath/internal/recording"
)

// Info is the series of a field of INFO.
func (n *Node) Info(field string) recording.Series {
	return n.Rec.Series(recording.SourceServer, n.Address, field)
}

// Growth is by how much a counter of INFO rose during the watch.
func (n *Node) Growth(field string) float64 { return n.Info(field).Growth() }

// PerSecond is the rate of a counter of INFO over the watch.
func (n *Node) PerSecond(field string) float64 {
	s := n.Info(field)
	if len(s) < 2 {
		return 0
	}
	return s.Growth() / max(float64(s[len(s)-1].TimeNs-s[0].TimeNs)/1e9, 1e-9)
}

// GrowthAround is by how much a counter of INFO rose in the polls around a suspect.
func (n *Node) GrowthAround(field string, s account.Suspect) float64 {
	total := 0.0
	for _, st := range n.Info(field).Steps() {
		if st.ToNs > s.FromNs && st.FromNs < s.ToNs {
			total += st.Delta
		}
	}
	return total
}

// MemoryFall is the largest fall of used_memory between two polls around a suspect, in bytes.
func (n *Node) MemoryFall(s account.Suspect) float64 {
	m := n.Info("used_memory")
	most := 0.0
	for i := 1; i < len(m); i++ {
		if m[i].TimeNs > s.FromNs && m[i-1].TimeNs < s.ToNs {
			most = max(most, m[i-1].Value-m[i].Value)
		}
	}
	return most
}

// Host is a series of the host source about the server's process.
func (n *Node) Host(name string) recording.Series {
	return n.Rec.Series(recording.SourceHost, n.Address, name)
}

// Machine is a series of the host source about the whole host.
func (n *Node) Machine(name string) recording.Series {
	return n.Rec.Series(recording.SourceHost, recording.SubjectMachine, name)
}

// Rate is the growth of a counter per second between its first and last point.
func Rate(s recording.Series) float64 {
	if len(s) < 2 {
		return 0
	}
	return s.Growth() / max(float64(s[len(s)-1].TimeNs-s[0].TimeNs)/1e9, 1e-9)
}

// LastValue is the last value of a series; 0 for an empty one.
func LastValue(s recording.Series) float64 {
	v, _ := s.Last()
	return v
}

// PollIntervalNs is how often the server source polls.
// Bound: slowpath, the interval of the server source.
const PollIntervalNs = 1e9
