package server

import (
	"fmt"
	"hash/maphash"
	"strconv"
	"time"

	"slowpath/internal/recording"
	"slowpath/internal/wire/resp"
)

// logReader turns new entries of one of the server's logs of commands into events, each once.
type logReader struct {
	of      commandLog
	sink    recording.Sink
	subject string
	clock   *serverClock
	own     func(logEntry) bool
	startNs int64 // entries that may have ended before are left out

	fetch  int      // entries to read
	seen   bool     // the log was read before
	lastID int64    // newest id that was read
	at     pollTime // when it was read
	lost   int64    // entries that were overwritten unread
}

// commandLog is one of the server's logs of commands.
type commandLog struct {
	kind string // of its events
	spot string // the blind spot that its refusal makes
	arg  string // of COMMANDLOG GET; empty for SLOWLOG, which all servers have
}

var (
	slowlog = commandLog{kind: recording.KindSlowlog, spot: "SLOWLOG GET"}
	// commandLogs are the logs that Valkey has from 8.1 on. Its log "slow" is SLOWLOG.
	commandLogs = []commandLog{
		{recording.KindLargeRequest, "COMMANDLOG GET", "large-request"},
		{recording.KindLargeReply, "COMMANDLOG GET", "large-reply"},
	}
)

// get is the command that reads entries.
func (l commandLog) get(entries int) []string {
	if l.arg == "" {
		return []string{"SLOWLOG", "GET", strconv.Itoa(entries)}
	}
	return []string{"COMMANDLOG", "GET", strconv.Itoa(entries), l.arg}
}

// fetchAtMost is the most entries that are read at once; the server's default keeps as many.
const fetchAtMost = 128

// fetchMore is for entries that are logged between reading the newest one and the fetch.
const fetchMore = 16

// missing says how many entries are to be read, given the newest: 0 if there is nothing new.
func (r *logReader) missing(newest []logEntry) int {
	if len(newest) == 0 || r.seen && newest[0].id == r.lastID {
		return 0
	}
	if !r.seen || newest[0].id < r.lastID {
		return fetchAtMost // the first time, or the server restarted its ids unnoticed
	}
	return int(min(newest[0].id-r.lastID, fetchAtMost))
}

// read takes a reply, newest entry first.
func (r *logReader) read(at pollTime, entries []logEntry) {
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

// takeNewest compares the newest entry with the last one that was read, to find how many are new.
func (r *logReader) takeNewest(at pollTime, v resp.Value) {
	newest := parseLog(v)
	switch r.fetch = r.missing(newest); r.fetch {
	case 0:
		r.nothingNew(at)
	case 1:
		r.read(at, newest)
		r.fetch = 0
	}
}

// nothingNew notes that all entries up to now are known.
func (r *logReader) nothingNew(at pollTime) {
	if !r.seen {
		r.seen, r.lastID = true, -1
	}
	r.at = at
}

// restarted forgets the ids: a server begins again at 0, with an empty log.
func (r *logReader) restarted() {
	if r.seen {
		r.lastID = -1
	}
}

// emit records an entry. Its command ended within a whole second of the server's clock, and between the poll before and
// this one.
func (r *logReader) emit(at pollTime, e logEntry, first bool) {
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
	detail := recording.SlowlogDetail{
		ID: e.id, Command: e.command, ArgCount: e.argCount, ArgBytes: e.argBytes, Client: e.client, Name: e.name,
		WindowNs: to - from, Framework: e.framework,
	}
	event := recording.Event{TimeNs: from, Source: source, Subject: r.subject, Kind: r.of.kind}
	if r.of == slowlog {
		event.DurationNs = e.amount * int64(time.Microsecond)
	} else {
		detail.Bytes, detail.KeyHash = min(e.amount, maxArgBytes), hashOf(e.key)
	}
	event.Detail = recording.Detail(detail)
	r.sink.Event(event)
}

// keySecret is what keys are hashed with. Nobody can find out which key a hash is of, not even by trying names.
var keySecret = maphash.MakeSeed()

func hashOf(key string) string {
	if key == "" {
		return ""
	}
	return fmt.Sprintf("%016x", maphash.String(keySecret, key))
}
