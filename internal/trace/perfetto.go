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

// Perfetto collects calls and what threads did, and writes them as a file that ui.perfetto.dev and chrome://tracing
// open, in the Trace Event Format (JSON,
// https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU).
//
// A process of the file is a client, with a track per call in flight at once, since pipelined calls overlap; or a
// server, with tracks of what its threads worked on and what they waited for. Slices are pairs of begin and end, and
// not "complete" events with a duration: rounding to microseconds could let a part end after its whole, and Perfetto
// drops such parts.
type Perfetto struct {
	Omitted int // what was left out, because there was too much
	calls   []Call
	events  []recording.Event
	size    int
}

// maxSlices bounds the memory that a trace takes; the user interface has its troubles with more.
const maxSlices = 1_000_000

// Call adds a call.
func (p *Perfetto) Call(c Call) {
	if p.room(1 + len(c.Segments)) {
		p.calls = append(p.calls, c)
	}
}

// Event adds what a thread did or waited for; other events are not shown.
func (p *Perfetto) Event(e recording.Event) {
	if e.Source == recording.SourceTap && (e.Kind == recording.KindWork || waitKinds[e.Kind]) && p.room(1) {
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

// slice is a stretch of a track. Its children follow each other in it.
type slice struct {
	name, category string
	from, to       int64 // nanoseconds since the Unix epoch
	args           map[string]any
	children       []slice
}

// file is what goes into the JSON: tracks by process, in the order in which they shall stand.
type file struct {
	tracks map[trackKey][]slice
	named  map[int]string // processes by number, as calls name them
}

type trackKey struct{ process, kind string }

// Write writes the file.
func (p *Perfetto) Write(w io.Writer) error {
	f := file{tracks: map[trackKey][]slice{}, named: map[int]string{}}
	owner := map[string]string{} // of connections: the first calls of one are seen before its process is
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

// Kinds of tracks, which are the beginnings of their names.
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
	_ = json.Unmarshal([]byte(e.Detail), &s.args) // a recording may be damaged: then there is less to read
	process := "server " + e.Subject
	var tid int
	if e.Kind == recording.KindWork {
		d := recording.DetailOf[recording.WorkDetail](e)
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

// workName says what a server worked on.
func workName(d recording.WorkDetail) string {
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

// write parts each list into tracks on which nothing overlaps.
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
