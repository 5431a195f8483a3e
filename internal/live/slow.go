package live

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"slowpath/internal/recording"
)

// SlowCall is a call that was slow, with its parts.
type SlowCall struct {
	Number   uint64 // grows by one for each
	Whose    Whose
	Call     recording.Call
	Segments []recording.Segment // at most 64
}

// Ns is how long it took, from when it was due.
func (s SlowCall) Ns() int64 { return s.Call.EndNs - s.Call.IntendedNs }

// Wait is what slow calls that are kept waited for.
type Wait struct {
	Actor, State, Culprit string // as in recording.Segment
	Calls                 int
	Ns                    int64 // in all
}

// Call implements recording.Sink.
func (v *View) Call(c recording.Call, segs ...recording.Segment) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.advance(c.EndNs / 1e9)
	whose := Users
	switch c.Source {
	case recording.SourceProbe:
		whose = Own
		if s := v.second(c.Node, c.EndNs/1e9); s != nil && c.Error != "" {
			s.ownFailed++
		}
	case recording.SourceTap:
		name, pid := splitProcess(c.Client)
		v.learn(c.Conn, name, pid)
	default:
		return
	}
	if c.EndNs-c.IntendedNs < v.threshold() {
		return
	}
	v.numbered++
	v.slow = append(v.slow, SlowCall{v.numbered, whose, c, slices.Clone(segs[:min(len(segs), maxParts)])})
	if len(v.slow)%trimEvery == 0 {
		v.trimSlow()
	}
}

// trimEvery is after how many slow calls those are forgotten that are not kept: each takes a kilobyte or more.
const trimEvery = maxSlow / 16

// trimSlow forgets the slow calls that are not kept, where they are a quarter of all. v.mu is held.
func (v *View) trimSlow() {
	if kept := v.recent(); 4*len(kept) <= 3*len(v.slow) {
		v.slow = slices.Clone(kept)
	}
}

// recent are the slow calls that are kept, oldest first. v.mu is held.
func (v *View) recent() []SlowCall {
	kept := v.slow[max(len(v.slow)-maxSlow, 0):]
	since := (v.now() - v.seconds) * 1e9
	for len(kept) > 0 && kept[0].Call.EndNs < since {
		kept = kept[1:]
	}
	return kept
}

// Slow are the newest slow calls, the newest first.
func (v *View) Slow(limit int) []SlowCall {
	v.mu.Lock()
	defer v.mu.Unlock()
	kept := v.recent()
	out := slices.Clone(kept[max(len(kept)-limit, 0):])
	slices.Reverse(out)
	return out
}

// Waits are what the slow calls that ended in [from, to), in seconds, waited for, the longest first.
func (v *View) Waits(from, to int64) []Wait {
	v.mu.Lock()
	defer v.mu.Unlock()
	sums := map[[3]string]*Wait{}
	for _, s := range v.recent() {
		if at := s.Call.EndNs / 1e9; at < from || at >= to {
			continue
		}
		counted := map[*Wait]bool{}
		for _, p := range s.Segments {
			what, _, _ := strings.Cut(p.Culprit, " from ") // the command, not each client
			k := [3]string{p.Actor, p.State, what}
			w := sums[k]
			if w == nil {
				w = &Wait{Actor: p.Actor, State: p.State, Culprit: what}
				sums[k] = w
			}
			w.Ns += max(p.ToNs-p.FromNs, 0)
			if !counted[w] {
				counted[w] = true
				w.Calls++
			}
		}
	}
	out := make([]Wait, 0, len(sums))
	for _, w := range sums {
		out = append(out, *w)
	}
	slices.SortFunc(out, func(a, b Wait) int {
		return cmp.Or(cmp.Compare(b.Ns, a.Ns), strings.Compare(a.Actor+a.State+a.Culprit, b.Actor+b.State+b.Culprit))
	})
	return out
}

// Event implements recording.Sink.
func (v *View) Event(e recording.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch e.Kind {
	case recording.KindOpen, recording.KindClose, recording.KindHandshake:
		v.connection(e)
	case recording.KindBlindSpot:
		var b recording.BlindSpot
		if json.Unmarshal([]byte(e.Detail), &b) == nil && len(v.blind) < maxNotes {
			v.blind[b] = true
		}
	case recording.KindUnseen:
		var u recording.Unseen
		if json.Unmarshal([]byte(e.Detail), &u) != nil {
			return
		}
		if _, known := v.unseen[u.What]; known || len(v.unseen) < maxNotes {
			v.unseen[u.What] = u
		}
	}
}
