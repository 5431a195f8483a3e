package account

import (
	"fmt"
	"strings"
	"time"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// counted is what commandstats says of one command between two polls, without what slowpath sent itself.
type counted struct {
	node, command string
	recording.Step
	calls      float64
	totalNs    float64
	logged     bool    // SLOWLOG shows the command around this time
	baselineNs float64 // its fastest average between two polls
}

// commandstatsSuspects finds commands that took long between two polls: on average, or in sum where a few long ones
// hide among short ones. SLOWLOG may be off, have a higher threshold, be overwritten or forbidden; and it shows each
// occurrence, not how many there were.
func commandstatsSuspects(rec *recording.Recording, node string, logged []Suspect) []Suspect {
	var out []Suspect
	polls := rec.EventsOf(recording.SourceServer, node, recording.KindPoll)
	for _, name := range rec.Names(recording.SourceServer, node, series.CommandPrefix) {
		stat, ok := strings.CutSuffix(strings.TrimPrefix(name, series.CommandPrefix), ".usec")
		if !ok {
			continue
		}
		for _, c := range readCounted(rec, node, stat, polls, logged) {
			if s, ok := c.suspect(); ok {
				out = append(out, s)
			}
		}
	}
	return out
}

func readCounted(rec *recording.Recording, node, stat string, polls []recording.Event, logged []Suspect) []counted {
	var out []counted
	command := strings.ToUpper(strings.ReplaceAll(stat, "|", " ")) // "CLUSTER NODES" for "cluster|nodes"
	calls, usec := rec.Of(series.CommandCalls(stat), node), series.CommandUsec(stat)
	baseline := 0.0
	for _, st := range rec.Of(usec, node).Steps() {
		before, _ := calls.At(st.FromNs)
		after, _ := calls.At(st.ToNs)
		n := after - before
		own := min(n, selfCalls(command, st, polls))
		if n < 1 || own == n {
			continue
		}
		c := counted{
			node: node, command: command, Step: st, calls: n - own, totalNs: usec.Ns(st.Delta) * (n - own) / n,
			logged: isLogged(logged, node, command, st),
		}
		if avg := c.totalNs / c.calls; baseline == 0 || avg < baseline {
			baseline = avg
		}
		out = append(out, c)
	}
	for i := range out {
		out[i].baselineNs = baseline
	}
	return out
}

func (c counted) suspect() (Suspect, bool) {
	avg := c.totalNs / c.calls
	s := Suspect{
		Kind: KindCommand, Node: c.node, Command: c.command, FromNs: c.FromNs, ToNs: c.ToNs,
		DurationNs: int64(avg), Count: int(c.calls),
		Source: byCommandstats, Text: c.command, Own: !ConstantTime(c.command) && !c.logged,
	}
	hidden := c.totalNs - 2*c.calls*c.baselineNs // of a long one among many
	switch {
	case s.DurationNs >= MinSuspectNs:
		return s, !c.logged || c.calls > 1
	case Introspection(c.command) && c.totalNs >= degree.Part*float64(c.ToNs-c.FromNs):
		s.Own = false
		return s, true
	case hidden >= float64(Noticed) && !c.logged && (!ConstantTime(c.command) || rareFree[c.command]):
		s.DurationNs, s.Count, s.Own = int64(hidden), 1, false
		s.Text = fmt.Sprintf("%s (%.0f ms more than usual for %.0f of them)", c.command, hidden/1e6, c.calls)
		return s, true
	}
	return s, false
}

// selfCalls bounds how many calls of a command in a step were slowpath's own.
func selfCalls(command string, st recording.Step, polls []recording.Event) float64 {
	name, _, _ := strings.Cut(command, " ")
	perPoll := map[string]float64{
		"INFO": 1, "SLOWLOG": 2, "LATENCY": 4, "CLIENT": 2, "CLUSTER": 2, "MEMORY": 1,
		"CONFIG": 64,
	}[name]
	n := 0.0
	for _, p := range polls {
		if p.TimeNs < st.ToNs && p.TimeNs+p.DurationNs > st.FromNs {
			n += perPoll
		}
	}
	return n
}

// isLogged reports whether SLOWLOG shows this command around a step already.
func isLogged(logged []Suspect, node, command string, st recording.Step) bool {
	for _, s := range logged {
		if s.Node == node && sameCommand(s.Command, command) && s.FromNs < st.ToNs+int64(time.Second) &&
			s.ToNs > st.FromNs-int64(time.Second) {
			return true
		}
	}
	return false
}
