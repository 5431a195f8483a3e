package server

import (
	"time"

	"slowpath/internal/recording"
)

// slowlogReader turns new entries of SLOWLOG into events, each once.
type slowlogReader struct {
	sink    recording.Sink
	subject string
	clock   *serverClock
	own     func(slowEntry) bool
	startNs int64 // entries that may have ended before are left out

	seen   bool     // SLOWLOG was read before
	lastID int64    // newest id that was read
	at     pollTime // when it was read
	lost   int64    // entries that were overwritten unread
}

// fetchAtMost is the largest SLOWLOG GET; the server's default keeps as many entries.
const fetchAtMost = 128

// fetchMore is for entries that are logged between reading the newest one and the fetch.
const fetchMore = 16

// missing says how many entries a SLOWLOG GET must ask for, given the newest: 0 if it has nothing new.
func (r *slowlogReader) missing(newest []slowEntry) int {
	if len(newest) == 0 || r.seen && newest[0].id == r.lastID {
		return 0
	}
	if !r.seen || newest[0].id < r.lastID {
		return fetchAtMost // the first time, or the server restarted its ids unnoticed
	}
	return int(min(newest[0].id-r.lastID, fetchAtMost))
}

// read takes a reply, newest entry first.
func (r *slowlogReader) read(at pollTime, entries []slowEntry) {
	first, since := !r.seen, r.lastID
	if len(entries) > 0 && entries[0].id < since {
		first = true
	}
	if first {
		since = -1
	}
	for i := len(entries) - 1; i >= 0; i-- {
		e := entries[i]
		if e.id > since && !r.own(e) {
			r.emit(at, e, first)
		}
	}
	if n := len(entries); n > 0 && since >= 0 {
		r.lost += max(0, entries[n-1].id-since-1)
	}
	r.nothingNew(at)
	if len(entries) > 0 {
		r.lastID = entries[0].id
	}
}

// nothingNew notes that all entries up to now are known.
func (r *slowlogReader) nothingNew(at pollTime) {
	if !r.seen {
		r.seen, r.lastID = true, -1
	}
	r.at = at
}

// restarted forgets the ids: a server begins again at 0, with an empty log.
func (r *slowlogReader) restarted() {
	if r.seen {
		r.lastID = -1
	}
}

// emit records an entry. Its command ended within a whole second of the server's clock, and between the poll before and
// this one.
func (r *slowlogReader) emit(at pollTime, e slowEntry, first bool) {
	from, to := r.clock.window(e.second)
	if first && from < r.startNs {
		return
	}
	begin := r.at.sent
	if first {
		begin = r.startNs
	}
	if max(from, begin) < min(to, at.done) {
		from, to = max(from, begin), min(to, at.done)
	} else {
		from, to = begin, at.done // the clocks differ by more than estimated: this host's clock counts
	}
	r.sink.Event(recording.Event{
		TimeNs: from, DurationNs: e.durationUsec * int64(time.Microsecond), Source: source,
		Subject: r.subject,
		Kind:    recording.KindSlowlog, Detail: recording.Detail(recording.SlowlogDetail{
			ID: e.id, Command: e.command,
			ArgCount: e.argCount,
			ArgBytes: e.argBytes, Client: e.client, Name: e.name, WindowNs: to - from, Framework: e.framework,
		}),
	})
}
