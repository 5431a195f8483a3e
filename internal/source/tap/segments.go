//go:build linux

package tap

import (
	"slices"

	"slowpath/internal/recording"
)

// stage is a part of a call during which one thread decides how long it takes, with its clocks at both ends.
type stage struct {
	span
	before, after kernelClocks
	tid           uint32
	actor         string
	running       string // state while the thread is on the CPU
	sleeping      string // and while it sleeps
	own           uint64 // connection whose activities are the call's own
}

// waitOrder is the order in which waits are laid; each has the state of its kind.
var waitOrder = [...]kernelThreadState{frozen, throttled, blocked, runnable, asleep}

// split divides a stage by the clocks of its thread. The sums are exact. Long waits of the thread, which are known one
// by one, keep their times; what is left of a state, waits too short to be reported, is put at the beginning. Where
// both clocks are the same but for the time asleep they are not known, as at the arrival of the first bytes of a
// connection, and long waits are all that is.
func (r *recorder) split(s stage) []recording.Segment {
	if s.to <= s.from {
		return nil
	}
	segs := []recording.Segment{{Actor: s.actor, State: s.running, FromNs: s.from, ToNs: s.to}}
	var log threadLog
	if l := r.threads[s.tid]; l != nil {
		log = *l
	}
	unknown := s.before
	unknown.Ns[asleep] = s.after.Ns[asleep]
	for _, state := range waitOrder {
		left := int64(s.after.Ns[state] - s.before.Ns[state])
		left = max(0, min(left, s.to-s.from))
		if unknown == s.after && state != asleep {
			segs, _ = layWaits(segs, s, log.waits, waitKinds[state], s.to-s.from)
			continue
		}
		name, actor := waitKinds[state], s.actor
		if state == asleep {
			name, actor = s.sleeping, sleeper(s)
			if name != recording.Exec && s.actor == recording.Server {
				left -= log.sleptWorking(s.from, s.to)
			}
		} else {
			segs, left = layWaits(segs, s, log.waits, name, left)
		}
		if left > 0 {
			segs, _ = lay(segs, recording.Segment{Actor: actor, State: name, FromNs: s.from, ToNs: s.to}, s.running,
				left)
		}
	}
	if s.actor == recording.Server && s.running == recording.Busy {
		nameCulprits(segs, s, log)
	}
	return segs
}

// sleeper is the actor of the time in which the thread of a stage sleeps.
func sleeper(s stage) string {
	switch s.sleeping {
	case recording.Unexplained:
		return recording.Nobody
	case recording.Forward:
		return recording.Proxy
	}
	return s.actor
}

// layWaits puts the known waits of a state over a stage, up to `left` nanoseconds, and tells how much of that is left.
func layWaits(segs []recording.Segment, s stage, waits []interval, state string, left int64) ([]recording.Segment,
	int64,
) {
	for _, w := range waits {
		if left <= 0 || w.state != state || w.overlap(s.from, s.to) <= 0 {
			continue
		}
		from, to := max(w.from, s.from), min(w.to, s.to)
		to = min(to, from+left)
		var laid int64
		segs, laid = lay(segs, recording.Segment{
			Actor: s.actor, State: state, FromNs: from, ToNs: to,
			Culprit: w.culprit,
		}, s.running, 1<<62)
		left -= laid
	}
	return segs, left
}

// nameCulprits names what the server did instead while a call waited for it.
func nameCulprits(segs []recording.Segment, s stage, log threadLog) {
	ofOthers := func(d interval) bool { return d.conn != s.own || d.conn == 0 }
	for i := range segs {
		if segs[i].State == recording.Busy {
			d, _ := longest(log.activities, segs[i].FromNs, segs[i].ToNs, ofOthers)
			segs[i].Culprit = log.name(d, segs[i].FromNs, segs[i].ToNs)
		}
	}
}

// lay puts s over up to `most` nanoseconds of those segments within it that have a state, and tells how much it took.
func lay(cv []recording.Segment, s recording.Segment, over string, most int64) ([]recording.Segment, int64) {
	var out []recording.Segment
	var laid int64
	for _, g := range cv {
		from, to := max(g.FromNs, s.FromNs), min(g.ToNs, s.ToNs, max(g.FromNs, s.FromNs)+most-laid)
		if g.State != over || from >= to {
			out = append(out, g)
			continue
		}
		put := func(seg recording.Segment, from, to int64) {
			if seg.FromNs, seg.ToNs = from, to; to > from {
				out = append(out, seg)
			}
		}
		put(g, g.FromNs, from)
		put(s, from, to)
		put(g, to, g.ToNs)
		laid += to - from
	}
	return out, laid
}

// serverSegments are those of a call at its server: waiting in the socket until it is read, its own execution, and
// waiting for others until its reply is sent.
func (r *recorder) serverSegments(e *kernelCallEvent) []recording.Segment {
	after := stage{running: recording.Busy, sleeping: r.sleepingState(e.Tid, e.Tgid, e.Flags)}
	if e.Flags&flagBlocking != 0 { // the event loop serves others meanwhile, and is not what it waits for
		after = stage{running: recording.AckWait, sleeping: recording.AckWait}
	}
	return r.atServer(e.At, e.Complete, e.Clk, e.Tid, e.Conn, after)
}

// sleepingState is what a server that sleeps does with a call that it has read. Where no rest of a reply is to be sent,
// it withholds the reply (CLIENT PAUSE, a command that blocks), or as a proxy waits for the server behind it. Else it
// sends as fast as the client receives. Of a thread that only reads for others it is not known what those do.
func (r *recorder) sleepingState(tid, tgid uint32, flags kernelCallFlag) string {
	proxy := slices.ContainsFunc(r.Nodes, func(n Node) bool { return n.Proxy != 0 && n.Proxy == int(tgid) })
	switch {
	case flags&flagPieces != 0:
		return recording.Send
	case flags&flagQuiet != 0 && proxy:
		return recording.Forward
	case flags&flagQuiet != 0 && tid == tgid:
		return recording.Withheld
	}
	return recording.Unexplained
}

// atServer takes the times of a call at its server. complete is when the last byte of the request had arrived; after
// has the states of the server between the call's own work and its reply.
func (r *recorder) atServer(at [4]uint64, complete uint64, clk [4]kernelClocks, tid uint32, conn uint64, after stage,
) []recording.Segment {
	t := [4]int64{r.time(at[0]), r.time(at[1]), r.time(at[2]), r.time(at[3])}
	for i := 1; i < len(t); i++ {
		t[i] = max(t[i], t[i-1])
	}
	whole := min(max(r.time(complete), t[0]), t[1])
	segs := add(nil, recording.Network, recording.Out, t[0], whole)
	t[0] = whole
	for i, s := range []stage{
		{actor: recording.Server, running: recording.Busy, sleeping: recording.Unexplained},
		{actor: recording.Server, running: recording.Exec, sleeping: recording.Exec},
		{actor: recording.Server, running: after.running, sleeping: after.sleeping},
	} {
		s.span, s.before, s.after, s.tid, s.own = span{t[i], t[i+1]}, clk[i], clk[i+1], tid, conn
		segs = append(segs, r.split(s)...)
	}
	return merged(segs)
}

// joined makes one call of the client's view and what is known of the server's. The parts of both that overlap are the
// server's.
func (r *recorder) joined(e *kernelCallEvent, k callKey, c recording.Call) (recording.Call, []recording.Segment) {
	sent, arrived := r.time(e.At[1]), r.time(e.At[2])
	start, end := c.StartNs, c.EndNs
	arrived = min(max(arrived, start), end)
	sent = min(max(sent, start), arrived)
	var inner []recording.Segment
	if v := r.serverViews[k]; v != nil {
		delete(r.serverViews, k)
		inner, c.Side, c.Op, c.ArgCount = v.segs, "both", v.call.Op, v.call.ArgCount
	} else if e.Flags&flagPaired != 0 {
		p := e.Pair
		var clk [4]kernelClocks
		if p.Split != 0 {
			clk = [4]kernelClocks{p.ClkArrived, p.ClkRead, p.ClkDone, p.ClkSend}
		}
		inner, c.Side = r.atServer([4]uint64{p.Arrived, p.Read, p.Done, p.Send}, p.Complete, clk, p.Tid, 0,
			stage{running: recording.Busy, sleeping: r.sleepingState(p.Tid, p.Tgid, kernelCallFlag(p.Flags))}), "both"
	}
	inner = clip(inner, start, arrived)
	var segs []recording.Segment
	if len(inner) > 0 {
		first, last := inner[0].FromNs, inner[len(inner)-1].ToNs
		segs = add(segs, recording.Client, recording.Send, start, min(sent, first))
		segs = add(segs, recording.Network, recording.Out, min(sent, first), first)
		segs = append(segs, inner...)
		segs = add(segs, recording.Network, recording.Back, last, arrived)
	} else {
		segs = add(segs, recording.Client, recording.Send, start, sent)
		segs = add(segs, recording.Nobody, recording.Unexplained, sent, arrived)
	}
	segs = r.layRetransmits(segs, k)
	read := r.split(stage{
		span: span{arrived, end}, before: e.Clk[2], after: e.Clk[3], tid: e.Tid,
		actor:   recording.Client,
		running: recording.Receive, sleeping: recording.OffCPU,
	})
	nameLock(read, int64(e.LockedNs))
	return c, merged(append(segs, read...))
}

// nameLock says of the sleep of a thread with its reply in the socket that it waited for another thread of its process,
// where it slept for most of it in futexes.
func nameLock(segs []recording.Segment, lockedNs int64) {
	asleep := int64(0)
	for _, s := range segs {
		if s.State == recording.OffCPU {
			asleep += s.ToNs - s.FromNs
		}
	}
	for i := range segs {
		if segs[i].State == recording.OffCPU && 2*lockedNs >= asleep {
			segs[i].Culprit = recording.LockOfProcess
		}
	}
}

// layRetransmits gives network time to the retransmissions that it was spent waiting for.
func (r *recorder) layRetransmits(segs []recording.Segment, k callKey) []recording.Segment {
	for _, s := range r.retransmissions[k.client] {
		for _, over := range []string{recording.Out, recording.Back, recording.Unexplained} {
			segs, _ = lay(segs, recording.Segment{
				Actor: recording.Network, State: recording.Retransmit, FromNs: s.from,
				ToNs: s.to, Culprit: "segment",
			}, over, 1<<62)
		}
	}
	return segs
}

func add(segs []recording.Segment, actor, state string, from, to int64) []recording.Segment {
	if to <= from {
		return segs
	}
	return append(segs, recording.Segment{Actor: actor, State: state, FromNs: from, ToNs: to})
}

// clip cuts segments to [from, to].
func clip(segs []recording.Segment, from, to int64) []recording.Segment {
	var out []recording.Segment
	for _, s := range segs {
		s.FromNs, s.ToNs = max(s.FromNs, from), min(s.ToNs, to)
		if s.ToNs > s.FromNs {
			out = append(out, s)
		}
	}
	return out
}

// merged joins equal neighbours.
func merged(segs []recording.Segment) []recording.Segment {
	var out []recording.Segment
	for _, s := range segs {
		if n := len(out) - 1; n >= 0 && out[n].Actor == s.Actor && out[n].State == s.State &&
			out[n].Culprit == s.Culprit && out[n].ToNs == s.FromNs {
			out[n].ToNs = s.ToNs
			continue
		}
		out = append(out, s)
	}
	return out
}

// settle passes on the views of one end whose other view did not come, and drops what ended.
func (r *recorder) settle(now int64) {
	for k, v := range r.clientViews {
		if now >= v.due {
			r.joinClientView(k)
		}
	}
	for k, v := range r.serverViews {
		if now >= v.due {
			delete(r.serverViews, k)
			r.pass(v.call, v.segs)
		}
	}
	for conn, h := range r.opens {
		if now >= h.due {
			r.passOpen(conn)
		}
	}
	r.expireDNS(now)
	r.emitConcurrent(now)
	r.expire(now)
}
