package probe

import (
	"slices"

	"slowpath/internal/recording"
	"slowpath/internal/wire/session"
)

// past is what the probe itself made of the time of its kept connection: it opened it, or it ran late. Calls that were
// due meanwhile waited for that, too. Ordered and disjoint.
type past []recording.Segment

// since forgets what ended before a time, from which on calls are due.
func (k *past) since(ns int64) {
	*k = slices.DeleteFunc(*k, func(s recording.Segment) bool { return s.ToNs <= ns })
}

// within is what is known of [from, to).
func (k past) within(from, to int64) []recording.Segment {
	var out []recording.Segment
	for _, s := range k {
		out = appendSegment(out, s.Actor, s.State, max(s.FromNs, from), min(s.ToNs, to), s.Culprit)
	}
	return out
}

// add joins a stretch to the one before it where both are of one kind.
func (k *past) add(s recording.Segment) {
	if s.ToNs <= s.FromNs {
		return
	}
	if n := len(*k) - 1; n >= 0 {
		if last := &(*k)[n]; last.Actor == s.Actor && last.State == s.State && last.Culprit == s.Culprit &&
			last.ToNs == s.FromNs {
			last.ToNs = s.ToNs
			return
		}
	}
	*k = append(*k, s)
}

// late notes that this process came to something at a time, though it could have when it was due and the connection
// free.
func (k *past) late(due, free, came int64) {
	k.add(recording.Segment{
		Actor: recording.Client, State: recording.RunQueue, FromNs: max(due, free), ToNs: came,
		Culprit: "slowpath",
	})
}

// attempt notes one attempt to open the connection, by its phases, and returns what a caller waits in until the next,
// where it failed. A connect is answered by the kernel of the server's host; once it stands it is the server that is
// waited for. One that refuses the connection in so many words was not waited for.
func (k *past) attempt(o session.Opening, begin, end int64, refused bool) recording.Segment {
	phase := func(state, culprit string, from, to int64) recording.Segment {
		s := recording.Segment{Actor: recording.App, State: state, FromNs: from, ToNs: min(to, end), Culprit: culprit}
		k.add(s)
		return s
	}
	if refused {
		return phase(recording.Dial, "refused", begin, end)
	}
	if o.TLS == 0 && o.Handshake == 0 { // it never stood
		return phase(recording.Dial, "reconnect", begin, end)
	}
	connected := begin + int64(o.DNS+o.Connect)
	phase(recording.Dial, "reconnect", begin, connected)
	secured := connected + int64(o.TLS)
	last := phase(recording.TLS, "", connected, secured)
	if o.Handshake > 0 {
		last = phase(recording.Handshake, "", secured, end)
	}
	return last
}
