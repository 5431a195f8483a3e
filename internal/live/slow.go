package live

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
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

// Caller is a program of this host, or another host, that calls.
type Caller struct {
	Name   string // of the program, or the host's address
	Calls  int64  // since the view began
	Slow   int    // of the slow calls that are kept
	LostNs int64  // their time beyond the slow threshold
}

// Wait is what slow calls that are kept waited for.
type Wait struct {
	Actor, State, Culprit string // as in recording.Segment
	Calls                 int
	Ns                    int64 // in all
}

type caller struct{ calls int64 }

// conn is a connection of a client, by its address.
type conn struct {
	caller string
	calls  int64 // of the last row about its use
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
		v.learn(c.Conn, c.Client)
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

// Callers are all that called, those first whose slow calls lost most.
func (v *View) Callers() []Caller {
	v.mu.Lock()
	defer v.mu.Unlock()
	sums := map[string]*Caller{}
	for name, c := range v.callers {
		sums[name] = &Caller{Name: name, Calls: c.calls}
	}
	threshold := v.threshold()
	for _, s := range v.recent() {
		if s.Whose != Users {
			continue
		}
		name := v.callerOf(s.Call.Conn, s.Call.Client)
		c := sums[name]
		if c == nil {
			c = &Caller{Name: name}
			sums[name] = c
		}
		c.Slow++
		c.LostNs += max(s.Ns()-threshold, 0)
	}
	out := make([]Caller, 0, len(sums))
	for _, c := range sums {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b Caller) int {
		return cmp.Or(cmp.Compare(b.LostNs, a.LostNs), cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// learn keeps which process a connection is of: "redis-cli[1234]". v.mu is held.
func (v *View) learn(client, process string) {
	if name := programOf(process); name != "" && client != "" {
		v.conn(client).caller = name
	}
}

// programOf is the name of the program of a process as recording.Call.Client has it.
func programOf(process string) string {
	if i := strings.LastIndexByte(process, '['); i >= 0 {
		return process[:i]
	}
	return process
}

// conn is that of an address. Where there are too many, any other is forgotten. v.mu is held.
func (v *View) conn(client string) *conn {
	c := v.conns[client]
	if c != nil {
		return c
	}
	for old := range v.conns {
		if len(v.conns) < maxConns {
			break
		}
		delete(v.conns, old)
	}
	c = &conn{}
	v.conns[client] = c
	return c
}

// callerOf names a caller by its process, or else by its host. v.mu is held.
func (v *View) callerOf(client, process string) string {
	if name := programOf(process); name != "" {
		return name
	}
	if c := v.conns[client]; c != nil && c.caller != "" {
		return c.caller
	}
	if i := strings.LastIndexByte(client, ':'); i > 0 {
		return strings.Trim(client[:i], "[]")
	}
	return client
}

// ConnUse implements recording.Sink.
func (v *View) ConnUse(client string, u recording.ConnUse) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.count(client, u.Calls)
}

// count has the caller of a connection make the calls that it had not made before, of this many in all. v.mu is held.
func (v *View) count(client string, calls int64) {
	c := v.conn(client)
	name := v.callerOf(client, "")
	of := v.callers[name]
	if of == nil {
		if len(v.callers) >= maxCallers {
			name = otherCallers
		}
		if of = v.callers[name]; of == nil {
			of = &caller{}
			v.callers[name] = of
		}
	}
	of.calls += max(calls-c.calls, 0)
	c.calls = calls
}

// otherCallers has the calls of callers beyond maxCallers.
const otherCallers = "other"

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

// connection learns whose a connection is, and counts the calls that were left without a reply. v.mu is held.
func (v *View) connection(e recording.Event) {
	var d recording.ConnDetail // of a handshake, too: the names are the same
	if json.Unmarshal([]byte(e.Detail), &d) != nil {
		return
	}
	if d.Side == recording.Client && d.Comm != "" {
		v.learn(d.Client, d.Comm+"["+strconv.Itoa(d.PID)+"]")
	}
	if e.Kind != recording.KindClose {
		return
	}
	if s := v.second(e.Subject, e.TimeNs/1e9); s != nil && d.Waiting > 0 && !d.Blocking {
		if d.Side == recording.Server {
			s.failedAtServer += int64(d.Waiting)
		} else {
			s.failedClient += int64(d.Waiting)
		}
	}
	if d.Side == recording.Client {
		v.count(d.Client, d.Calls) // one that lived for less than a second had no row about its use
		delete(v.conns, d.Client)
	}
}
