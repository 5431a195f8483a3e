// Package pasted is the source that reads what somebody pasted into an issue or a ticket: what INFO, SLOWLOG GET,
// LATENCY, CLIENT LIST and CONFIG GET printed in a terminal, between other text, with or without prompts. It writes
// what the source server would have recorded of it.
//
// Texts have no calls, and mostly no times of their own: those of INFO follow from the server's clock or its uptime.
// Their content is hostile: all that is kept is bounded, and of commands only names and sizes are kept.
package pasted

import (
	"errors"
	"fmt"
	"strconv"

	"slowpath/internal/recording"
)

// Bounds of the texts.
const (
	// MaxBytes of a file, and of all of them together.
	MaxBytes = 16 << 20
	// maxLineBytes of a line count; the rest of it is left out.
	maxLineBytes = 4 << 10
	// maxServers are told apart.
	maxServers = 64
	// maxParts are what commands printed, of a file.
	maxParts = 5000
)

// ErrNothing says that no text is of a command that is known.
var ErrNothing = errors.New("nothing of INFO, SLOWLOG GET, LATENCY LATEST, CLIENT LIST or CONFIG GET")

// File is a text with its name.
type File struct {
	Name string
	Text []byte
}

// Summary is what was found.
type Summary struct {
	Servers []string // names of the servers that the texts are of
	Infos   int      // replies to INFO
	Slow    int      // entries of SLOWLOG
}

// Read writes what texts say into a recording. version is that of this program.
func Read(files []File, version string, sink recording.Sink) (s Summary, err error) {
	g := &groups{}
	lines := 0
	for _, f := range files {
		parts, n := split(f.Text)
		lines += n
		g.file()
		for _, p := range parts {
			g.add(p)
		}
	}
	servers := g.done()
	if len(servers) == 0 {
		return s, fmt.Errorf("%w in %d lines", ErrNothing, lines)
	}
	var first, last int64
	for _, v := range servers {
		from, to := v.write(sink)
		if first == 0 || from < first {
			first = from
		}
		last = max(last, to)
		s.Servers, s.Infos, s.Slow = append(s.Servers, v.name), s.Infos+len(v.infos), s.Slow+v.slow
	}
	writeMeta(servers, first, last, version, sink)
	return s, nil
}

func writeMeta(servers []*server, first, last int64, version string, sink recording.Sink) {
	var names []string
	for _, v := range servers {
		names = append(names, v.name)
	}
	set := sink.SetMeta
	set(recording.MetaStart, strconv.FormatInt(first, 10))
	set(recording.MetaEnd, strconv.FormatInt(last, 10))
	set(recording.MetaNodes, recording.Detail(names))
	set(recording.MetaTarget, names[0])
	set(recording.MetaKind, servers[0].kind)
	set(recording.MetaServer, servers[0].product)
	set(recording.MetaSlow, "auto")
	set(recording.MetaVersion, version)
	const why = "these are texts: "
	for _, st := range []recording.SourceStatus{
		{Name: recording.SourceText, Used: true},
		{Name: recording.SourceServer, Used: true},
		{Name: recording.SourceProbe, Why: why + "slowpath made no calls of its own"},
		{Name: recording.SourceHost, Why: why + "the files of the server's host were not read"},
		{Name: recording.SourceTap, Why: why + "they have no calls of clients"},
	} {
		set(recording.MetaSource+st.Name, recording.Detail(st))
	}
	for _, v := range servers {
		for _, b := range v.missing() {
			sink.Event(recording.Event{
				TimeNs: first, Source: recording.SourceServer, Subject: v.name, Kind: recording.KindBlindSpot,
				Detail: recording.Detail(b),
			})
		}
	}
}
