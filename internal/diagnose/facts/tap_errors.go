package facts

import (
	"strings"

	"slowpath/internal/recording"
)

// TapErrors are the error replies to the server's clients that the tap counted: by the first word of the error, and by
// command. Where both ends of a connection counted, it is the end that has more.
func (n *Node) TapErrors() map[string]NameCounts {
	if n.tapErrors == nil {
		n.tapErrors = n.findTapErrors()
	}
	return n.tapErrors
}

func (n *Node) findTapErrors() map[string]NameCounts {
	bySide := map[string]map[string]NameCounts{}
	total := map[string]int{}
	for _, name := range n.Rec.Names(recording.SourceTap, n.Address, recording.ErrorRepliesPrefix) {
		side, op, code, ok := recording.ParseErrorReplies(name)
		count, _ := n.Rec.Series(recording.SourceTap, n.Address, name).Last()
		if !ok || count <= 0 {
			continue
		}
		if bySide[side] == nil {
			bySide[side] = map[string]NameCounts{}
		}
		if bySide[side][code] == nil {
			bySide[side][code] = NameCounts{}
		}
		bySide[side][code][op] += int(count)
		total[side] += int(count)
	}
	best := map[string]NameCounts{}
	most := 0
	for _, side := range []string{recording.Client, recording.Server} {
		if total[side] > most {
			best, most = bySide[side], total[side]
		}
	}
	return best
}

// RefusedCommands are the commands of clients that were refused before they were executed, by the server's own count
// (rejected_calls of commandstats, 6.2 and later), without those that manage a connection.
func (n *Node) RefusedCommands() NameCounts { return n.countCommands("rejected_calls") }

// FailedCommands are those, and the commands of clients that failed while they were executed (failed_calls).
func (n *Node) FailedCommands() NameCounts { return n.countCommands("rejected_calls", "failed_calls") }

// countCommands adds up counters of commandstats by command, without slowpath's own calls that got an error.
func (n *Node) countCommands(counters ...string) NameCounts {
	out := NameCounts{}
	for _, name := range n.Rec.Names(recording.SourceServer, n.Address, "cmdstat_") {
		for _, counter := range counters {
			op, ok := strings.CutSuffix(strings.TrimPrefix(name, "cmdstat_"), "."+counter)
			if count := int(n.growthSinceStart(name)); ok && count > 0 && IsDataCommand(op) {
				out[strings.ToUpper(strings.ReplaceAll(op, "|", " "))] += count
			}
		}
	}
	for _, c := range n.Rec.Calls {
		if out[c.Op] == 0 || c.Node != n.Address || c.Source != recording.SourceProbe ||
			failureOf(c.Error) != FailedReply {
			continue
		}
		if out[c.Op]--; out[c.Op] == 0 {
			delete(out, c.Op)
		}
	}
	return out
}

// growthSinceStart is the growth of a counter that appears with its first count: where it was not there at the first
// poll it is counted from zero.
func (n *Node) growthSinceStart(name string) float64 {
	s, first := n.Info(name), n.Info("uptime_in_seconds")
	growth := s.Growth()
	if len(s) > 0 && len(first) > 0 && s[0].TimeNs > first[0].TimeNs {
		growth += s[0].Value
	}
	return growth
}
