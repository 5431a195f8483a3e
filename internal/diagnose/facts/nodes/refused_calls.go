package nodes

import (
	"sort"
	"strings"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// RefusedCalls are the calls that a node answered with one error during the watch.
type RefusedCalls struct {
	// Code is the first word of the error.
	Code string
	// Users is the number of such replies to the server's clients: by the server's count, without those to slowpath;
	// where it has none, by the tap's.
	Users float64
	// UsersOf is the number of all calls of clients.
	UsersOf float64
	// Counted says that the server counts errors by their code (6.2 and later).
	Counted bool
	// Own is the number of slowpath's own calls with it, OwnOf of all of the same commands.
	Own, OwnOf int
	// OwnBefore says that a call of slowpath with the same command, on the same kind of connection, succeeded before
	// the first one that failed.
	OwnBefore bool
	// FromNs is when the first one was seen: an own call exactly, the server's count to a second.
	FromNs int64
}

// UsersShare is the part of the clients' calls that got the error.
func (r RefusedCalls) UsersShare() float64 { return r.Users / max(r.UsersOf, r.Users, 1) }

// OwnShare is the part of slowpath's own calls of these commands that got the error.
func (r RefusedCalls) OwnShare() float64 { return float64(r.Own) / float64(max(r.OwnOf, r.Own, 1)) }

// RefusedCallsOf are those by code, the most frequent first.
func RefusedCallsOf(n *facts.Node) (out []RefusedCalls) {
	codes := map[string]bool{}
	for _, name := range n.Rec.Names(recording.SourceServer, n.Address, series.ErrorPrefix) {
		if code, ok := strings.CutSuffix(strings.TrimPrefix(name, series.ErrorPrefix), ".count"); ok {
			codes[code] = true
		}
	}
	for code := range TapErrors(n) {
		codes[code] = true
	}
	for _, c := range n.Rec.Calls {
		if c.Node == n.Address && c.Source == recording.SourceProbe && failureOf(c.Error) == failedReply {
			codes[c.Error] = true
		}
	}
	for code := range codes {
		if r := RefusedWith(n, code); r.Users > 0 || r.Own > 0 {
			out = append(out, r)
		}
	}
	sort.Slice(out, func(i, j int) bool {
		if a, b := out[i].Users+float64(out[i].Own), out[j].Users+float64(out[j].Own); a != b {
			return a > b
		}
		return out[i].Code < out[j].Code
	})
	return out
}

// RefusedWith are the calls that the node answered with an error.
func RefusedWith(n *facts.Node, code string) RefusedCalls {
	r := RefusedCalls{Code: code}
	ownRefusals(n, &r)
	served := max(n.Growth(series.TotalCommandsProcessed)-connection.OwnCommandsPerSecond(n)*n.Seconds(), 0)
	if r.Users, r.Counted = ErrorCount(n, code); r.Counted {
		r.Users = max(r.Users-OwnErrorReplies(n, code), 0)
	} else {
		r.Users = float64(TapErrors(n)[code].Total())
	}
	r.UsersOf = served + r.Users
	if rises := ErrorRises(n, code); len(rises) > 0 && (r.FromNs == 0 || rises[0].ToNs < r.FromNs) {
		r.FromNs = rises[0].ToNs
	}
	return r
}

// ownRefusals counts slowpath's own calls with an error.
func ownRefusals(n *facts.Node, r *RefusedCalls) {
	type path struct{ calls, failed, before int }
	paths := map[string]*path{}
	for _, c := range n.Rec.Calls { // in order of their begin
		if c.Node != n.Address || c.Source != recording.SourceProbe {
			continue
		}
		p := paths[c.Conn+" "+c.Op]
		if p == nil {
			p = &path{}
			paths[c.Conn+" "+c.Op] = p
		}
		p.calls++
		switch {
		case c.Error == r.Code:
			if p.failed++; r.FromNs == 0 {
				r.FromNs = c.StartNs
			}
		case c.Error == "" && p.failed == 0:
			p.before++
		}
	}
	for _, p := range paths {
		if p.failed > 0 {
			r.Own += p.failed
			r.OwnOf += p.calls
			r.OwnBefore = r.OwnBefore || p.before > 0
		}
	}
}

// OwnErrorReplies is how many of the error replies that the server counted were to slowpath, at most: for the probe
// also those to a fresh connection's handshake, and for the server source one in each poll (CLUSTER INFO).
func OwnErrorReplies(n *facts.Node, code string) (own float64) {
	for _, c := range n.Rec.Calls {
		switch {
		case c.Node != n.Address || c.Source != recording.SourceProbe || c.Error != code:
		case c.Conn == "fresh":
			own += connection.CommandsPerFresh
		default:
			own++
		}
	}
	if own > 0 {
		own += float64(len(n.Events(recording.SourceServer, recording.KindPoll)))
	}
	return own
}

// ErrorRises are the rises of the server's count of an error, including one that restarted from zero.
func ErrorRises(n *facts.Node, code string) (out []recording.Step) {
	s := n.Series(series.ErrorCount(code))
	for i, p := range s[min(1, len(s)):] {
		before := s[i]
		d := p.Value - before.Value
		if d < 0 {
			d = p.Value // since its start
		}
		out = append(out, recording.Step{FromNs: before.TimeNs, ToNs: p.TimeNs, Delta: d})
	}
	return out
}

// RefusingSpans is when the node was in the state in which it gives an error, according to INFO and to the probe's own
// calls.
func RefusingSpans(n *facts.Node, code string) facts.Spans {
	out := ownRefusedSpans(n, code)
	switch code {
	case "LOADING":
		out = append(out, spansOf(n, series.Loading, func(v float64) bool { return v > 0 }, 0)...)
	case "MASTERDOWN": // a field that exists only in that state
		down := func(float64) bool { return true }
		out = append(out, spansOf(n, series.MasterLinkDownSinceSeconds, down, int64(facts.PollIntervalNs))...)
	}
	return facts.MergeSpans(out)
}

// ownRefusedSpans is when the probe's own calls were refused: from one to the next, while none succeeded between them.
func ownRefusedSpans(n *facts.Node, code string) (out facts.Spans) {
	last := int64(0) // end of the refused call before; 0: none since the last success
	for _, c := range n.Rec.Calls {
		if c.Node != n.Address || c.Source != recording.SourceProbe {
			continue
		}
		if c.Error == "" {
			last = 0
		}
		if c.Error != code {
			continue
		}
		from := c.StartNs
		if last > 0 {
			from = min(from, last)
		}
		out, last = append(out, facts.Span{FromNs: from, ToNs: c.EndNs}), c.EndNs
	}
	return out
}

// spansOf are the spans from a matching point of a series to the next point, or to the end of the watch; where
// holdsNs is set, no longer than that.
func spansOf(n *facts.Node, of series.Name, match func(float64) bool, holdsNs int64) (out facts.Spans) {
	s := n.Series(of)
	for i, p := range s {
		to := n.EndNs
		if i+1 < len(s) {
			to = s[i+1].TimeNs
		}
		if holdsNs > 0 {
			to = min(to, p.TimeNs+holdsNs)
		}
		if match(p.Value) {
			out = append(out, facts.Span{FromNs: p.TimeNs, ToNs: to})
		}
	}
	return out
}

// WasReplica reports whether the node said that it is a replica, at any time.
func WasReplica(n *facts.Node) bool {
	for _, t := range n.InfoTexts {
		if t.Role == "slave" {
			return true
		}
	}
	return false
}
