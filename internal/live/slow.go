package live

import (
	"encoding/json"
	"slices"

	"slowpath/internal/recording"
)

// SlowCall is a call that was slow, with its parts.
type SlowCall struct {
	Number uint64 // grows by one for each
	Whose  Whose
	Call   recording.Call
	// Segments are ordered, disjoint, and add up to the call: those of its account once that is known (View.Account),
	// until then those that its source measured, and what these leave open is unexplained. At most 64.
	Segments []recording.Segment
	// OwnDelayNs is the part of the call in which slowpath's own process waited for a CPU. It counts in no latency.
	OwnDelayNs int64
}

// Ns is how long it took, from when it was due, without slowpath's own delay.
func (s SlowCall) Ns() int64 { return s.Call.EndNs - s.Call.IntendedNs - s.OwnDelayNs }

// Call implements recording.Sink.
func (v *View) Call(c recording.Call, segs ...recording.Segment) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.advance(c.EndNs / 1e9)
	call := SlowCall{Whose: Users, Call: c, OwnDelayNs: recording.OwnDelayNs(c, segs)}
	switch c.Source {
	case recording.SourceProbe:
		call.Whose = Own
		if c.Error == "" {
			v.fastest(c.Node, c.Conn, call.Ns())
			v.learnDistance(c, segs)
		}
	case recording.SourceTap:
		name, pid := splitProcess(c.Client)
		v.learn(c.Conn, c.Node, name, pid)
		switch {
		case recording.AwaitsAcks(c.Op): // the kernel counts none of the commands that block,
			v.countWait(c, recording.Server, recording.Client)
		case c.Error == recording.NoReplyYet: // nor of calls without a reply
			v.countWait(c, c.Side)
		}
	default:
		return
	}
	slow := call.Ns() >= v.slowNs(c, segs)
	v.countCall(call, slow)
	if !slow {
		return
	}
	call.Segments = wholeOf(c, segs)
	if v.otherEnd(call) {
		return
	}
	if call.Whose == Users {
		e := v.edgeOf(c)
		e.Slow, e.LostNs = e.Slow+1, e.LostNs+max(call.Ns()-v.threshold(), 0)
	}
	v.numbered++
	call.Number = v.numbered
	v.slow = append(v.slow, call)
	if len(v.slow)%forgetEvery == 0 {
		v.trimSlow()
	}
}

// forgetEvery is after how many slow calls those are forgotten that are not kept: each takes a kilobyte or more.
const forgetEvery = maxSlow / 16

// otherEnds is how many calls back the other end's view of a call may be.
const otherEnds = 64

// otherEnd reports whether a call is known from its other end: the client's view, which has the server's in it, counts.
// v.mu is held.
func (v *View) otherEnd(c SlowCall) bool {
	in := func(inner, outer recording.Call) bool {
		return inner.Side == recording.Server && outer.Side != recording.Server && inner.Conn == outer.Conn &&
			inner.Op == outer.Op && inner.IntendedNs >= outer.IntendedNs && inner.EndNs <= outer.EndNs
	}
	for i := len(v.slow) - 1; c.Whose == Users && i >= max(len(v.slow)-otherEnds, 0); i-- {
		known := &v.slow[i]
		switch {
		case known.Whose != Users:
		case in(c.Call, known.Call):
			return true
		case in(known.Call, c.Call):
			c.Number = known.Number
			*known = c
			return true
		}
	}
	return false
}

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
