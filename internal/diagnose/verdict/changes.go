package verdict

import (
	"cmp"
	"math"
	"path"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/changes"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/law"
	"slowpath/internal/stats"
)

const (
	// citedWithinNs is how long before a finding's calls a change is cited.
	// Bound: slowpath, the minute before an incident that the agent judges with it.
	citedWithinNs = int64(60e9)
	// changesSeen is how many changes a diagnosis has, the last ones.
	// Bound: arithmetic, the size of a list.
	changesSeen = 100
)

// seen are the last changes.
func seen(all []changes.Change) (out []changes.Seen) {
	for _, change := range all[max(len(all)-changesSeen, 0):] {
		out = append(out, change.Seen())
	}
	return out
}

// cite adds to each finding the changes that came before it: those that its mechanism names, and others if its calls
// were slow more often since. A consequence has those of its root.
func cite(c *facts.Case, all []changes.Change, found []cause.Finding) {
	if len(found) == 0 || len(all) == 0 {
		return
	}
	usual := usualOf(c)
	for i := range found {
		if f := &found[i]; f.Because == "" {
			f.Changes = citedBy(c, f, all, usual)
		}
	}
}

func citedBy(c *facts.Case, f *cause.Finding, all []changes.Change, usual usual) (out []changes.Cited) {
	slow := slowCallsOf(c, f)
	for _, change := range all {
		if !isAbout(f, change, len(c.Nodes)) {
			continue
		}
		cited := changes.Cited{Seen: change.Seen(), ByMechanism: byMechanism(f.Cause, change)}
		if len(c.Nodes) == 1 {
			cited.Node = ""
		}
		first, ok := slow.firstAfter(change.FromNs)
		if len(slow) > 0 && (!ok || first-change.ToNs > citedWithinNs) ||
			!cited.ByMechanism && !slow.moreOftenSince(change.Span, usual) {
			continue
		}
		if ok {
			cited.BeforeNs = max(first-change.ToNs, 0)
		}
		out = append(out, cited)
	}
	slices.SortStableFunc(out, func(a, b changes.Cited) int {
		if a.ByMechanism != b.ByMechanism {
			if a.ByMechanism {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.BeforeNs, b.BeforeNs)
	})
	out = slices.CompactFunc(out, func(a, b changes.Cited) bool { return a.Sentence() == b.Sentence() })
	return out[:min(len(out), degree.Listed)]
}

// isAbout reports whether a change is one of a node at which the finding was made, or of all.
func isAbout(f *cause.Finding, change changes.Change, nodes int) bool {
	if nodes == 1 || change.Node == "" || len(f.Claims) == 0 {
		return true
	}
	return slices.ContainsFunc(f.Claims, func(cl law.Claim) bool {
		return cl.Node == nil || cl.Node.Address == change.Node
	})
}

// byMechanism reports whether a cause names such a change.
func byMechanism(id string, change changes.Change) bool {
	for _, why := range cause.Catalogue() {
		if why.ID != id {
			continue
		}
		for _, pattern := range why.Changes {
			for _, name := range change.Names {
				if is, _ := path.Match(pattern, name); is {
					return true
				}
			}
		}
	}
	return false
}

// spansOfCalls are the times of a finding's slow calls, from when they were due to their replies, by their ends.
type spansOfCalls []facts.Span

func slowCallsOf(c *facts.Case, f *cause.Finding) (out spansOfCalls) {
	for _, cl := range f.Claims {
		for _, k := range cl.Calls {
			call := &c.Ledger.Slow[k.Index].Call
			out = append(out, facts.Span{FromNs: call.IntendedNs, ToNs: call.EndNs})
		}
	}
	slices.SortFunc(out, func(a, b facts.Span) int { return cmp.Compare(a.ToNs, b.ToNs) })
	return out
}

// firstAfter is when the first of the calls was due that had no reply at a time.
func (s spansOfCalls) firstAfter(ns int64) (first int64, ok bool) {
	first = math.MaxInt64
	for _, call := range s {
		if call.ToNs > ns {
			first, ok = min(first, call.FromNs), true
		}
	}
	return first, ok
}

// usual is what is known of the time before the calls of a finding.
type usual struct {
	fromNs int64   // since when
	slow   []int64 // of the time before that of the recording: the middles of the seconds with slow calls
}

// usualOf is the time of the watch, and in the recording of an incident the time before it, of which it has latencies.
func usualOf(c *facts.Case) usual {
	u := usual{fromNs: c.StartNs}
	earlier := c.Rec.Earlier()
	if earlier == nil {
		return u
	}
	for _, h := range earlier.Histograms {
		at := time.Unix(h.Second, 0).UnixNano()
		u.fromNs = min(u.fromNs, at)
		calls, err := hdrhistogram.Decode(h.HDR)
		if err != nil || calls.Max() >= c.Ledger.ThresholdNs {
			u.slow = append(u.slow, at+int64(time.Second)/2)
		}
	}
	return u
}

// moreOftenSince reports whether calls were slow in a larger part of the seconds since a change than before it: by more
// than chance allows, and as long as the last of them came.
func (s spansOfCalls) moreOftenSince(change facts.Span, u usual) bool {
	before, after := map[int64]bool{}, map[int64]bool{}
	from, to := max(u.fromNs, change.FromNs-citedWithinNs), change.FromNs
	for _, at := range u.slow {
		if at >= from && at <= change.FromNs {
			before[(change.FromNs-at)/int64(time.Second)] = true
		}
	}
	for _, call := range s {
		switch {
		case call.ToNs > change.FromNs+citedWithinNs || call.ToNs < from:
		case call.ToNs <= change.FromNs:
			before[(change.FromNs-call.ToNs)/int64(time.Second)] = true
		default:
			after[(call.ToNs-change.FromNs)/int64(time.Second)] = true
			to = max(to, call.ToNs)
		}
	}
	seconds := func(ns int64) int { return int(math.Ceil(float64(ns) / 1e9)) }
	_, mostBefore := stats.Proportion(len(before), max(seconds(change.FromNs-from), len(before)))
	least, _ := stats.Proportion(len(after), max(seconds(to-change.FromNs), len(after)))
	return least > mostBefore
}
