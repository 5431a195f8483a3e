package probe

import (
	"slices"

	"slowpath/internal/recording"
	"slowpath/internal/wire/session"
)

// delays is when the probe itself kept calls of its kept connection waiting: it opened the connection, or it ran late.
// Calls that were due meanwhile waited for that, too. The segments are ordered and disjoint.
type delays []recording.Segment

// forgetBefore drops what ended before a time: later calls are due after it.
func (k *delays) forgetBefore(ns int64) {
	*k = slices.DeleteFunc(*k, func(s recording.Segment) bool { return s.ToNs <= ns })
}

// within are the delays in [from, to).
func (k delays) within(from, to int64) []recording.Segment {
	var out []recording.Segment
	for _, s := range k {
		out = appendSegment(out, s.Actor, s.State, max(s.FromNs, from), min(s.ToNs, to), s.Culprit)
	}
	return out
}

// add adds a segment, joined to the one before it where both are of one kind.
func (k *delays) add(s recording.Segment) {
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

// late adds that this process did something at a time (came), and could have done it when it was due and the connection
// was free.
func (k *delays) late(due, free, came int64) {
	k.add(recording.Segment{
		Actor: recording.Client, State: recording.RunQueue, FromNs: max(due, free), ToNs: came,
		Culprit: "slowpath",
	})
}

// attempt adds one attempt to open the connection, by its phases, and returns the state in which a caller waits until
// the next one, where it failed. A connect is answered by the kernel of the server's host; after it the caller waits
// for the server. For a server that refuses the login with an error reply, the caller did not wait.
func (k *delays) attempt(o session.Opening, begin, end int64, refused bool) recording.Segment {
	phase := func(state, culprit string, from, to int64) recording.Segment {
		s := recording.Segment{Actor: recording.App, State: state, FromNs: from, ToNs: min(to, end), Culprit: culprit}
		k.add(s)
		return s
	}
	if refused {
		return phase(recording.Dial, "refused", begin, end)
	}
	if o.TLS == 0 && o.Handshake == 0 { // it was not connected
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
