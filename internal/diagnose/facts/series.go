package facts

import (
	"slices"
	"strconv"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// Series is a series about the node, or about the whole host.
func (n *Node) Series(of series.Name) recording.Series { return n.Rec.Of(of, n.Address) }

// Growth is by how much a counter rose during the watch.
func (n *Node) Growth(of series.Name) float64 { return n.Series(of).Growth() }

// PerSecond is the rate of a counter over the watch.
func (n *Node) PerSecond(of series.Name) float64 { return Rate(n.Series(of)) }

// Cores is the rate of a counter of time in seconds per second.
func (n *Node) Cores(of series.Name) float64 { return of.Seconds(n.PerSecond(of)) }

// GrowthNs is by how much a counter of time rose during the watch, in nanoseconds.
func (n *Node) GrowthNs(of series.Name) float64 { return of.Ns(n.Growth(of)) }

// GrowthAround is by how much a counter of INFO rose in the polls around a suspect.
func (n *Node) GrowthAround(of series.Name, s account.Suspect) float64 {
	total := 0.0
	for _, st := range n.Series(of).Steps() {
		if st.ToNs > s.FromNs && st.FromNs < s.ToNs {
			total += st.Delta
		}
	}
	return total
}

// MemoryFall is the largest fall of used_memory between two polls around a suspect, in bytes.
func (n *Node) MemoryFall(s account.Suspect) float64 {
	m := n.Series(series.UsedMemory)
	most := 0.0
	for i := 1; i < len(m); i++ {
		if m[i].TimeNs > s.FromNs && m[i-1].TimeNs < s.ToNs {
			most = max(most, m[i-1].Value-m[i].Value)
		}
	}
	return most
}

// CgroupSeries is a series about a cgroup.
func (c *Case) CgroupSeries(path string, of series.Name) recording.Series { return c.Rec.Of(of, path) }

// ProcessSeries is a series about a client's process.
func (c *Case) ProcessSeries(pid int, of series.Name) recording.Series {
	return c.Rec.Of(of, strconv.Itoa(pid))
}

// CountedCommands are the commands in commandstats, in order, as it names them: "cluster|nodes".
func (n *Node) CountedCommands() (commands []string) {
	for _, name := range n.Rec.Names(recording.SourceServer, n.Address, series.CommandPrefix) {
		command, _ := strings.CutPrefix(name, series.CommandPrefix)
		if i := strings.LastIndexByte(command, '.'); i > 0 && !slices.Contains(commands, command[:i]) {
			commands = append(commands, command[:i])
		}
	}
	return commands
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

// WorkNsOf is the server's own mean time for a command in nanoseconds; 0 where it does not count that.
func (n *Node) WorkNsOf(op string) int64 {
	command := series.InCommandstats(op)
	calls := n.Growth(series.CommandCalls(command))
	if calls == 0 {
		return 0
	}
	return int64(n.Growth(series.CommandUsec(command)) / calls * 1000)
}
