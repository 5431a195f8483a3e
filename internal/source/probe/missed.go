package probe

import (
	"fmt"

	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// maxMissed is how many calls are sent late, after something held the probe up. All of them at once would be a load
// that nobody asked for, on a server that has just come back.
const maxMissed = 5

// Reasons why a call that was due was not sent.
const (
	// MissedOwn: slowpath itself did not run: it was stopped (Ctrl-Z), or got no CPU. It says nothing of the server,
	// and is not recorded.
	MissedOwn = "slowpath"
	// MissedWaiting: the kept connection was not free, or not open. Such a call is recorded with the time until it was:
	// it would have taken at least so long (coordinated omission).
	MissedWaiting = "waiting"
	// MissedConnections: as many fresh connections as are allowed were waiting already. It is not recorded.
	MissedConnections = "connections"
)

// behind is the number of slots that are over and were not used.
func (s *slots) behind(nowNs int64) int64 { return max((nowNs-s.startNs)/s.widthNs-s.k, 0) }

// leaveOut leaves out the calls on the kept connection that were missed, but for the last ones. The connection was free
// from freeNs on.
func (p *prober) leaveOut(sched *slots, freeNs int64, own delays) {
	for left := sched.behind(p.Clock.Now()) - maxMissed; left > 0; {
		d := sched.next()
		left--
		if d.atNs >= freeNs {
			sched.k += left
			p.missed(MissedOwn, 1+left)
			return
		}
		segs := own.within(d.atNs, freeNs)
		if late := ownDelay(segs, d.atNs, freeNs); late > (freeNs-d.atNs)/2 {
			more := min(left, sched.behind(own.lateUntil(d.atNs)))
			sched.k, left = sched.k+more, left-more
			p.missed(MissedOwn, 1+more)
			continue
		}
		p.missed(MissedWaiting, 1)
		c := recording.Call{
			Source: recording.SourceProbe, Conn: Kept, Op: p.first(d.k)[0], Node: p.Node, Slot: -1,
			IntendedNs: d.atNs, StartNs: freeNs, EndNs: freeNs,
		}
		p.record(c, segs)
		p.notMade(c, NotSent, own)
	}
}

// leaveOutFresh is leaveOut of fresh connections, which wait for no other call: slowpath missed them, and the last one
// says as much as several at once.
func (p *prober) leaveOutFresh(sched *slots) {
	if n := sched.behind(p.Clock.Now()) - 1; n > 0 {
		sched.k += n
		p.missed(MissedOwn, n)
	}
}

func (p *prober) missed(why string, n int64) {
	if why == MissedOwn {
		p.notRun.Add(n)
	}
	if p.OnMissed != nil {
		p.OnMissed(why, n)
	}
}

// sayMissed records what the recording lacks because slowpath itself did not run.
func (p *prober) sayMissed() {
	n := p.notRun.Load()
	if n == 0 {
		return
	}
	p.Sink.Event(recording.Event{
		TimeNs: p.Clock.Now(), Source: recording.SourceProbe, Subject: p.Node, Kind: recording.KindBlindSpot,
		Detail: recording.Detail(recording.BlindSpot{
			What:   fmt.Sprintf("%s of slowpath's own, due and not sent", format.Count(n, "call")),
			Why:    "slowpath itself did not run then: it was stopped (Ctrl-Z), or got no CPU",
			Enable: "let it run without a stop, on a host that has CPU time for it",
		}),
	})
}

// ownDelay is the part of [from, to) in which this process itself was late.
func ownDelay(segs []recording.Segment, from, to int64) (ns int64) {
	for _, s := range segs {
		if isOwn(s) {
			ns += max(min(s.ToNs, to)-max(s.FromNs, from), 0)
		}
	}
	return ns
}

func isOwn(s recording.Segment) bool {
	return s.Actor == recording.Client && s.State == recording.RunQueue
}

// lateUntil is the end of the time around ns in which this process was late; ns where it was not.
func (k delays) lateUntil(ns int64) int64 {
	for _, s := range k {
		if isOwn(s) && s.FromNs <= ns && ns < s.ToNs {
			return s.ToNs
		}
	}
	return ns
}
