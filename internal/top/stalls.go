package top

import (
	"cmp"
	"slices"
	"strings"

	"slowpath/internal/live"
	"slowpath/internal/recording"
)

// usersFirst leaves slowpath's own calls out where users' calls were slow, too: they waited for the same.
func usersFirst(calls []live.SlowCall) []live.SlowCall {
	ofUsers := func(c live.SlowCall) bool { return c.Whose == live.Users }
	if !slices.ContainsFunc(calls, ofUsers) {
		return calls
	}
	return slices.DeleteFunc(calls, func(c live.SlowCall) bool { return !ofUsers(c) })
}

// part is what a call waited for.
type part struct{ actor, state, culprit string }

// longest is the part that took most of the time of a call; false where none was seen.
func longest(segments []recording.Segment) (best part, ok bool) {
	var sums []int64
	var parts []part
	most := int64(-1)
	for _, s := range segments {
		k := part{s.Actor, s.State, s.Culprit}
		i := slices.Index(parts, k)
		if i < 0 {
			i, parts, sums = len(parts), append(parts, k), append(sums, 0)
		}
		if sums[i] += s.ToNs - s.FromNs; sums[i] > most {
			best, most = k, sums[i]
		}
	}
	return best, len(parts) > 0
}

// openStalls is how many stalls a call may belong to: those of the calls just before it.
const openStalls = 16

// stallsOf joins calls, the newest first, that waited at one time for the same: of each the slowest call stands for
// all.
func stallsOf(calls []live.SlowCall) (out []Call) {
	type span struct {
		part
		fromNs, toNs int64
	}
	var spans []span
	for _, c := range calls {
		where, seen := longest(c.Segments)
		joined := false
		for i := max(0, len(out)-openStalls); i < len(out) && seen && !joined; i++ {
			s := &spans[i]
			if s.part != where || c.Call.IntendedNs > s.toNs || c.Call.EndNs < s.fromNs {
				continue
			}
			joined = true
			s.fromNs, s.toNs = min(s.fromNs, c.Call.IntendedNs), max(s.toNs, c.Call.EndNs)
			out[i].Number = c.Number // of the first call: it stays when others join
			out[i].Others++
			if c.Ns() > out[i].Ns() {
				out[i].Row, out[i].Segments, out[i].OwnDelayNs = c.Call, c.Segments, c.OwnDelayNs
			}
		}
		if joined {
			continue
		}
		if len(out) == frameRows {
			break
		}
		out = append(out, Call{Number: c.Number, Row: c.Call, Segments: c.Segments, OwnDelayNs: c.OwnDelayNs})
		spans = append(spans, span{where, c.Call.IntendedNs, c.Call.EndNs})
	}
	return out
}

// kindOf is a culprit without what differs each time: a command, whichever client sent it, or a program, whichever of
// its processes had the CPU.
func kindOf(culprit string) string {
	if _, isProcess := recording.PIDOf(culprit); isProcess {
		return culprit[:strings.LastIndexByte(culprit, '[')]
	}
	what, _, _ := strings.Cut(culprit, " from ")
	return what
}

// waitsOfCalls are where slow calls that ended after a time were, the longest first.
func waitsOfCalls(calls []live.SlowCall, afterNs int64) (out []Wait) {
	at, all := map[part]int{}, int64(0)
	for _, c := range calls {
		counted := map[int]bool{}
		for _, s := range c.Segments {
			if c.Call.EndNs < afterNs {
				break
			}
			k := part{s.Actor, s.State, kindOf(s.Culprit)}
			i, known := at[k]
			if !known {
				i = len(out)
				at[k], out = i, append(out, Wait{Actor: k.actor, State: k.state, Culprit: k.culprit})
			}
			ns := max(0, s.ToNs-s.FromNs)
			out[i].Ns, all = out[i].Ns+ns, all+ns
			if !counted[i] {
				counted[i] = true
				out[i].Calls++
			}
		}
	}
	for i := range out {
		out[i].Share = float64(out[i].Ns) / float64(max(all, 1))
	}
	slices.SortFunc(out, func(a, b Wait) int {
		return cmp.Or(cmp.Compare(b.Ns, a.Ns), strings.Compare(a.Actor+a.State+a.Culprit, b.Actor+b.State+b.Culprit))
	})
	const least = 0.0005 // what would be shown as 0.0 %
	out = slices.DeleteFunc(out, func(w Wait) bool { return w.Share < least })
	return out[:min(len(out), frameRows)]
}
