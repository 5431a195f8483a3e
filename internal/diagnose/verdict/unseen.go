package verdict

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// minUnseen is the least share that a diagnosis says something of. A confidence is printed with two decimals, and what
// was not seen lowers it by its share at most: less than this changes no digit.
// Bound: arithmetic, half of the last digit that is printed.
const minUnseen = 0.005

// unseenOf are the rows of a recording about what was not seen, by source. A row is written again while a watch goes
// on: the last one counts.
func unseenOf(rec *recording.Recording) map[string][]recording.Unseen {
	out := map[string][]recording.Unseen{}
	for _, e := range rec.Events { // in order of time
		if e.Kind != recording.KindUnseen {
			continue
		}
		u := recording.DetailOf[recording.Unseen](e)
		if u.What == "" {
			continue
		}
		list, known := out[e.Source], false
		for i := range list {
			if known = list[i].What == u.What; known {
				list[i] = u
				break
			}
		}
		if !known {
			list = append(list, u)
		}
		out[e.Source] = list
	}
	return out
}

// unseenSpots are the rows that matter, as blind spots, in the order of the sources.
func unseenSpots(rec *recording.Recording) (out []recording.BlindSpot) {
	all := unseenOf(rec)
	for _, source := range []string{
		recording.SourceTap, recording.SourceHost, recording.SourceServer, recording.SourceProbe,
		recording.SourceRecording,
	} {
		for _, u := range all[source] {
			if u.Share() >= minUnseen {
				out = append(out, recording.BlindSpot{What: u.What, Why: u.Why, Enable: u.Enable, Share: u.Share()})
			}
		}
	}
	return out
}

// missedBy is the largest part that a source missed of anything, and did not count either.
func missedBy(list []recording.Unseen) (share float64) {
	for _, u := range list {
		if !u.Counted {
			share = max(share, u.Share())
		}
	}
	return share
}

// missedOf is the share of a finding's evidence that its sources missed, each by its part of the evidence: at worst all
// of that speaks against the finding. What the recording lost may be of any source.
func missedOf(f *cause.Finding, all map[string][]recording.Unseen) float64 {
	sum, lost := 0.0, missedBy(all[recording.SourceRecording])
	for _, e := range f.Evidence {
		sum += max(missedBy(all[e.Source]), lost)
	}
	if share := sum / float64(max(len(f.Evidence), 1)); share >= minUnseen {
		return share
	}
	return 0
}

// namelessSpot is that the functions in which the event loop was while calls waited have no names.
func namelessSpot(n *facts.Node) (b recording.BlindSpot, ok bool) {
	share := mainthread.LoopTimeOf(n).Nameless()
	return recording.BlindSpot{
		What: "what the event loop of " + n.Address + " did while calls waited", Share: share,
		Why: "these functions have no names: the program is stripped of its symbols",
		Enable: "install its debug symbols (Debian: the package redis-server-dbgsym or valkey-server-dbgsym), and " +
			"watch again",
	}, share > 0
}

// unixSpot is that the tap does not see clients over Unix sockets, where a node has some.
func unixSpot(n *facts.Node) (b recording.BlindSpot, ok bool) {
	u := caller.UnixClientsOf(n)
	tapped := n.Rec.Used(recording.SourceTap)
	if u.Most == 0 || u.Share < minUnseen || !tapped && !strings.HasPrefix(n.Address, "/") {
		return b, false
	}
	of := "clients"
	if u.ByCommands {
		of = "commands"
	}
	b = recording.BlindSpot{
		What: fmt.Sprintf("calls of %s over Unix sockets, of all %s of %s", format.Count(u.Most, "client"), of,
			n.Address),
		Why: "the tap sees calls over TCP", Enable: "let these clients use TCP while you watch",
	}
	if tapped { // else no call is known that it would be a share of
		b.Share = u.Share
	}
	if u.Crowds[0].Who.PID != 0 {
		b.What += ", most of " + caller.CrowdsText(u.Crowds, 1)
	}
	return b, true
}

// mostlyUnseen says of a healthy server that most of something was not seen; empty: nothing of the kind.
func mostlyUnseen(c *facts.Case) string {
	var spots []recording.BlindSpot
	for _, list := range unseenOf(c.Rec) {
		for _, u := range list {
			if !u.Counted && u.Share() > degree.Most {
				spots = append(spots, recording.BlindSpot{What: u.What, Share: u.Share()})
			}
		}
	}
	for _, n := range c.Nodes {
		if b, ok := unixSpot(n); ok && b.Share > degree.Most {
			spots = append(spots, b)
		}
	}
	if len(spots) == 0 {
		return ""
	}
	worst := slices.MaxFunc(spots, func(a, b recording.BlindSpot) int {
		return cmp.Or(cmp.Compare(a.Share, b.Share), strings.Compare(b.What, a.What))
	})
	return fmt.Sprintf(" Most was not seen: %s, %s.", worst.What, format.Percent(worst.Share))
}

// droppedSpot is the blind spot of recordings that have the number of their dropped rows alone.
func droppedSpot(rec *recording.Recording) (b recording.BlindSpot, ok bool) {
	n := rec.Meta[recording.MetaDropped]
	if n == "" || len(unseenOf(rec)[recording.SourceRecording]) > 0 {
		return b, false
	}
	return recording.BlindSpot{
		What: n + " rows of evidence", Why: "the recording could not be written as fast as evidence came in",
		Enable: "record to a faster disk",
	}, true
}

// endSpot is that of a recording without an end.
func endSpot(rec *recording.Recording) (b recording.BlindSpot, ok bool) {
	if rec.Meta[recording.MetaStart] == "" || rec.Meta[recording.MetaEnd] != "" {
		return b, false
	}
	_, end := rec.Window()
	return recording.BlindSpot{
		What: "everything after " + time.Unix(0, end).UTC().Format("15:04:05 UTC"),
		Why:  "the recording has no end: slowpath was killed, or its disk was full",
	}, true
}

// reportedSpots are the blind spots that sources reported themselves.
func reportedSpots(rec *recording.Recording) (out []recording.BlindSpot) {
	seen := map[recording.BlindSpot]bool{}
	for _, e := range rec.Events {
		if e.Kind != recording.KindBlindSpot {
			continue
		}
		var b recording.BlindSpot
		if json.Unmarshal([]byte(e.Detail), &b) == nil && !seen[b] {
			seen[b] = true
			out = append(out, b)
		}
	}
	return out
}
