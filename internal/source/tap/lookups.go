//go:build linux

package tap

import (
	"fmt"

	"slowpath/internal/recording"
)

// lookup is what a process asked a name server on one socket, until it is answered.
type lookup struct {
	process
	from  int64 // the first question
	last  int64 // the last
	sends int
	done  bool // there was an answer: what is sent next is another question
}

// Bounds of lookups.
const (
	// minLookup: a name server in the same network answers within a millisecond; shorter ones are not written down.
	minLookup = int64(1e6)
	// lookupGivenUp: no resolver waits so long without asking again (resolv.conf(5): timeout 5 s by default, at most 30
	// s).
	lookupGivenUp = int64(31e9)
	// lookupLost: by then a question that has no answer is one that got lost, not one that is under way.
	lookupLost = int64(500e6)
	maxLookups = 4096
)

// lookup books a question or an answer.
func (b *book) lookup(e *kernelLookupEvent) {
	now := b.time(e.Now)
	l := b.asked[e.Sock]
	// the kernel uses the memory of a closed socket again
	if l != nil && (l.pid != int(e.Tgid) || l.done && e.Answer == 0) {
		if !l.done {
			b.tellLookup(l, l.last, false)
		}
		l = nil
	}
	switch {
	case e.Answer == 0 && l == nil:
		if len(b.asked) < maxLookups {
			b.asked[e.Sock] = &lookup{process: process{int(e.Tgid), comm(e.Comm)}, from: now, last: now, sends: 1}
		}
	case e.Answer == 0:
		l.last = now
		l.sends++
	case l != nil: // of two questions at once, for IPv4 and IPv6, each has an answer
		l.done, l.last = true, now
		if now-l.from >= minLookup {
			b.tellLookup(l, now, true)
		}
	}
	b.askAgain(e, now)
}

// askAgain ends what the same process waited for in vain on other sockets: Go's resolver asks again on a new one.
func (b *book) askAgain(e *kernelLookupEvent, now int64) {
	if e.Answer != 0 {
		return
	}
	for sock, l := range b.asked {
		if sock != e.Sock && l.pid == int(e.Tgid) && !l.done && now-l.last >= lookupLost {
			b.tellLookup(l, now, false)
			delete(b.asked, sock)
		}
	}
}

// unanswered forgets what nobody waits for any more.
func (b *book) unanswered(now int64) {
	ended := now == 1<<62
	for sock, l := range b.asked {
		if l.done && now-l.last > lookupLost || now-l.last > lookupGivenUp {
			if !l.done && (!ended || b.Clock.Now()-l.from >= lookupLost) {
				b.tellLookup(l, min(now, b.Clock.Now()), false)
			}
			delete(b.asked, sock)
		}
	}
}

func (b *book) tellLookup(l *lookup, to int64, answered bool) {
	b.Sink.Event(recording.Event{
		TimeNs: l.from, DurationNs: to - l.from, Source: recording.SourceTap,
		Subject: fmt.Sprintf("%s%d", recording.ProcessPrefix, l.pid),
		Kind:    recording.KindLookup, Detail: recording.Detail(recording.LookupDetail{
			Comm: l.comm, Questions: l.sends,
			Answered: answered,
		}),
	})
}
