package trace

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	"slowpath/internal/recording"
)

// Perfetto collects calls and thread activity, and writes them as a file for ui.perfetto.dev and chrome://tracing, in
// the Trace Event Format (JSON,
// https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU).
//
// A process of the file is a client, with several tracks, since pipelined calls overlap; or a server, with tracks of
// the work and the waits of its threads. Slices are pairs of begin and end events, not "complete" events with a
// duration: after rounding to microseconds a child could end after its parent, and Perfetto drops such slices.
type Perfetto struct {
	Omitted int // calls and events beyond maxSlices
	calls   []Call
	events  []recording.Event
	size    int
}

// maxSlices bounds the memory of a trace; Perfetto's user interface is slow with more.
const maxSlices = 1_000_000

// Call adds a call.
func (p *Perfetto) Call(c Call) {
	if p.room(1 + len(c.Segments)) {
		p.calls = append(p.calls, c)
	}
}

// Event adds work or a wait of a thread; other events are not exported.
func (p *Perfetto) Event(e recording.Event) {
	if e.Source == recording.SourceTap && (e.Kind == recording.KindActivity || waitKinds[e.Kind]) && p.room(1) {
		p.events = append(p.events, e)
	}
}

var waitKinds = map[string]bool{
	recording.KindThrottled: true, recording.KindRunQueue: true, recording.KindFrozen: true,
	recording.KindBlocked: true,
}

func (p *Perfetto) room(n int) bool {
	if p.size+n > maxSlices {
		p.Omitted++
		return false
	}
	p.size += n
	return true
}

// slice is a span on a track. Its children are disjoint parts of it.
type slice struct {
	name, category string
	from, to       int64 // nanoseconds since the Unix epoch
	args           map[string]any
	children       []slice
}

// file is the content of the JSON: tracks by process.
type file struct {
	tracks map[trackKey][]slice
	named  map[int]string // names of processes in calls, by number
}

type trackKey struct{ process, kind string }

// Write writes the file.
func (p *Perfetto) Write(w io.Writer) error {
	f := file{tracks: map[trackKey][]slice{}, named: map[int]string{}}
	owner := map[string]string{} // by connection: its first calls are seen before its process is known
	for _, c := range p.calls {
		if c.Process != "" {
			owner[c.Client] = c.Process
		}
	}
	for _, c := range p.calls {
		c.Process = cmp.Or(c.Process, owner[c.Client])
		f.call(c)
	}
	for _, e := range p.events {
		f.event(e)
	}
	out := newEvents(w, f.begin())
	f.write(out)
	return out.end()
}

func (f file) add(process, kind string, s slice) {
	k := trackKey{process, kind}
	f.tracks[k] = append(f.tracks[k], s)
}

// Kinds of tracks: prefixes of their names.
const (
	callTrack = "calls in flight"
	workTrack = "work"
	waitTrack = "waits"
)

func (f file) call(c Call) {
	s := slice{name: c.Op, category: "call", from: c.FromNs(), to: c.ToNs(), args: map[string]any{
		"client":  c.Client,
		"process": c.Process, "node": c.Node,
		"side": c.Side, "ns": c.Ns, "request_bytes": c.RequestBytes, "reply_bytes": c.ReplyBytes,
	}}
	if c.Error != "" {
		s.args["error"] = c.Error
	}
	for _, g := range c.Segments {
		part := slice{
			name: strings.TrimPrefix(g.Actor+" "+g.State, recording.Nobody+" "), category: g.Actor,
			from: c.FromNs() + g.FromNs, to: c.FromNs() + g.ToNs,
		}
		if g.Culprit != "" {
			part.args = map[string]any{"culprit": g.Culprit}
		}
		s.children = append(s.children, part)
	}
	process := c.Process
	if pid, ok := recording.PIDOf(process); ok {
		f.named[pid] = process
	} else if process, _, _ = net.SplitHostPort(c.Client); process == "" {
		process = c.Client
	}
	f.add("client "+process, callTrack, s)
}

func (f file) event(e recording.Event) {
	s := slice{from: e.TimeNs, to: e.TimeNs + e.DurationNs, name: e.Kind, category: e.Kind, args: map[string]any{}}
	_ = json.Unmarshal([]byte(e.Detail), &s.args) // a damaged detail leaves args empty
	process := "server " + e.Subject
	var tid int
	if e.Kind == recording.KindActivity {
		d := recording.DetailOf[recording.ActivityDetail](e)
		s.name, tid = workName(d), d.TID
		f.add(process, fmt.Sprintf("%s of thread %d", workTrack, tid), s)
		return
	}
	d := recording.DetailOf[recording.ThreadDetail](e)
	if number, ok := strings.CutPrefix(e.Subject, recording.ProcessPrefix); ok {
		process = "client " + d.Comm + "[" + number + "]"
		if pid, err := strconv.Atoi(number); err == nil && f.named[pid] != "" {
			process = "client " + f.named[pid]
		}
	}
	f.add(process, fmt.Sprintf("%s of thread %d", waitTrack, d.TID), s)
}

// workName names a server's event-loop activity.
func workName(d recording.ActivityDetail) string {
	switch {
	case d.Sends:
		return "send reply"
	case d.Internal != "":
		return d.Internal
	case d.Op == "":
		return "own work"
	case d.Calls > 1:
		return fmt.Sprintf("%s +%d", d.Op, d.Calls-1)
	}
	return d.Op
}

// begin is the time of the first slice.
func (f file) begin() int64 {
	first := int64(1<<63 - 1)
	for _, list := range f.tracks {
		for _, s := range list {
			first = min(first, s.from)
		}
	}
	if len(f.tracks) == 0 {
		return 0
	}
	return first
}

// write distributes each list to tracks without overlaps.
func (f file) write(out *eventWriter) {
	keys := slices.SortedFunc(maps.Keys(f.tracks), func(a, b trackKey) int {
		return cmp.Or(cmp.Compare(b.process, a.process), cmp.Compare(a.kind, b.kind)) // servers first
	})
	process := ""
	for _, k := range keys {
		if k.process != process {
			process = k.process
			out.process(process)
		}
		list := f.tracks[k]
		slices.SortStableFunc(list, func(a, b slice) int { return cmp.Compare(a.from, b.from) })
		var places lanes
		var tracks [][]slice
		for _, s := range list {
			n := places.take(s.from, s.to)
			if n == len(tracks) {
				tracks = append(tracks, nil)
			}
			tracks[n] = append(tracks[n], s)
		}
		for n, track := range tracks {
			name := k.kind
			if k.kind == callTrack || n > 0 {
				name += fmt.Sprintf(" %d", n+1)
			}
			out.track(name)
			for _, s := range track {
				out.slice(s)
			}
		}
	}
}
