package nodes

import (
	"strings"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// TapErrors are the error replies to the server's clients that the tap counted: by the first word of the error, and by
// command. Where both ends of a connection counted, it is the end that has more.
func TapErrors(n *facts.Node) map[string]facts.NameCounts {
	return facts.Once(n, "error replies", findTapErrors)
}

func findTapErrors(n *facts.Node) map[string]facts.NameCounts {
	best := map[string]facts.NameCounts{}
	most := 0
	for _, end := range []string{recording.Client, recording.Server} {
		of, total := map[string]facts.NameCounts{}, 0
		for _, name := range n.Rec.Names(recording.SourceTap, n.Address, recording.ErrorRepliesPrefix) {
			side, op, code, ok := recording.ParseErrorReplies(name)
			count, _ := n.Rec.Series(recording.SourceTap, n.Address, name).Last()
			if !ok || side != end || count <= 0 || recording.ExpectedReply(op, code) {
				continue
			}
			if of[code] == nil {
				of[code] = facts.NameCounts{}
			}
			of[code][op] += int(count)
			total += int(count)
		}
		if total > most {
			best, most = of, total
		}
	}
	return best
}

// RefusedCommands are the commands of clients that were refused before they were executed, by the server's own count
// (rejected_calls of commandstats, 6.2 and later), without those that manage a connection.
func RefusedCommands(n *facts.Node) facts.NameCounts { return countCommands(n, series.CommandRejected) }

// FailedCommands are those, and the commands of clients that failed while they were executed (failed_calls).
func FailedCommands(n *facts.Node) facts.NameCounts {
	return countCommands(n, series.CommandRejected, series.CommandFailed)
}

// countCommands adds up counters of commandstats by command, without slowpath's own calls that got an error.
func countCommands(n *facts.Node, counters ...func(command string) series.Name) facts.NameCounts {
	out := facts.NameCounts{}
	for _, command := range n.CountedCommands() {
		for _, counter := range counters {
			if count := int(growthSinceStart(n, counter(command))); count > 0 && facts.IsDataCommand(command) {
				out[strings.ToUpper(strings.ReplaceAll(command, "|", " "))] += count
			}
		}
	}
	for _, c := range n.Rec.Calls {
		if out[c.Op] == 0 || c.Node != n.Address || c.Source != recording.SourceProbe ||
			failureOf(c.Error) != failedReply {
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
func growthSinceStart(n *facts.Node, of series.Name) float64 {
	s, first := n.Series(of), n.Series(series.UptimeInSeconds)
	growth := s.Growth()
	if len(s) > 0 && len(first) > 0 && s[0].TimeNs > first[0].TimeNs {
		growth += s[0].Value
	}
	return growth
}
