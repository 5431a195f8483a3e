package server

import (
	"cmp"
	"slices"

	"slowpath/internal/recording"
	"slowpath/internal/wire/resp"
)

// Told is what a server said of itself to somebody else, at times that are known afterwards: the same rows as those of
// a watch that had asked then.
type Told struct {
	sink     recording.Sink
	node     string
	samples  sampler
	changes  changes
	clock    serverClock
	latency  latencyReader
	settings map[string]string
	text     string // of the last "info" snapshot
}

// NewTold returns what a server said that is the subject of all that is written.
func NewTold(node string, sink recording.Sink) *Told {
	t := &Told{sink: sink, node: node, settings: map[string]string{}}
	t.samples, t.changes = sampler{sink: sink, subject: node}, changes{sink: sink, subject: node}
	t.latency = latencyReader{
		sink: sink, subject: node, clock: &t.clock, done: map[string]int64{}, open: map[string]bool{},
		first: map[string]spike{},
	}
	return t
}

// Info takes the text of INFO of a time; those of a server in order of time. last says that no other follows.
func (t *Told) Info(atNs int64, text string, last bool) {
	in, at := parseInfo(text), pollTime{atNs, atNs}
	t.sink.Event(recording.Event{
		TimeNs: atNs, Source: source, Subject: t.node, Kind: recording.KindPoll, Detail: recording.Detail(struct{}{}),
	})
	t.changes.add(at, in)
	t.samples.poll(at, in.fields, last)
	if text := jsonObject(in.text); text != t.text {
		t.text = text
		t.snapshot(atNs, SnapshotInfo, text)
	}
}

// Slowlog takes replies to SLOWLOG GET up to a time, which may have the same entries. It returns how many there are.
func (t *Told) Slowlog(untilNs int64, replies []resp.Value) int {
	entries := entriesOf(replies)
	r := logReader{
		of:   slowlog,
		sink: t.sink, subject: t.node, clock: &t.clock,
		own: func(e logEntry) bool { return e.name == ClientName },
	}
	r.read(pollTime{untilNs, untilNs}, entries)
	return len(entries)
}

// entriesOf are the entries of replies to SLOWLOG GET, each once, the newest first.
func entriesOf(replies []resp.Value) (entries []logEntry) {
	for _, v := range replies {
		entries = append(entries, parseLog(v)...)
	}
	slices.SortStableFunc(entries, func(a, b logEntry) int { return cmp.Compare(b.id, a.id) })
	return slices.CompactFunc(entries, func(a, b logEntry) bool { return a == b })
}

// Latency takes the reply to LATENCY HISTORY of an event.
func (t *Told) Latency(event string, history resp.Value) {
	if isEventName(event) {
		t.latency.read(pollTime{}, event, parseHistory(history), true)
	}
}

// Latest takes the reply to LATENCY LATEST, of events whose history is not known: the newest sample of each.
func (t *Told) Latest(v resp.Value) {
	for _, l := range parseLatest(v) {
		if _, known := t.latency.done[l.event]; !known {
			t.latency.read(pollTime{}, l.event, []spike{l.spike}, true)
		}
	}
}

// Clients takes the text of CLIENT LIST of a time.
func (t *Told) Clients(atNs int64, text string) {
	clients := ParseClients(text)
	t.snapshot(atNs, SnapshotClients, clientLines(clients))
	t.snapshot(atNs, SnapshotClientCounts, recording.Detail(countClients(clients)))
}

// Doctor takes the lines of the report of LATENCY DOCTOR that are about events. They have no time.
func (t *Told) Doctor(atNs int64, text string) {
	t.snapshot(atNs, recording.SnapshotLatencyDoctor, text)
}

// Config takes the reply to CONFIG GET.
func (t *Told) Config(v resp.Value) { readConfig(t.settings, v) }

// Settings writes what CONFIG GET said until a time.
func (t *Told) Settings(atNs int64) {
	if len(t.settings) > 0 {
		t.snapshot(atNs, SnapshotConfig, jsonObject(t.settings))
	}
}

func (t *Told) snapshot(timeNs int64, name, body string) {
	t.sink.Snapshot(recording.Snapshot{TimeNs: timeNs, Source: source, Subject: t.node, Name: name, Body: body})
}

// Seconds are the times, in whole seconds since the Unix epoch, of what replies to SLOWLOG GET, LATENCY LATEST or
// LATENCY HISTORY have.
func Seconds(v resp.Value) (out []int64) {
	for _, e := range parseLog(v) {
		out = append(out, e.second)
	}
	for _, l := range parseLatest(v) {
		out = append(out, l.second)
	}
	if len(out) > 0 {
		return out // entries of those look like samples of a history
	}
	for _, s := range parseHistory(v) {
		out = append(out, s.second)
	}
	return out
}

// Setting reports whether a name is that of a setting that matters for latency, of those that CONFIG GET has.
func Setting(name string) bool { return matches(configPatterns, name) }
