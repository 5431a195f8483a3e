package account

import (
	"encoding/json"
	"sort"
	"strings"

	"slowpath/internal/recording"
)

// tapped is what the kernel source saw of the thread that serves the calls of one node.
type tapped struct {
	works   []work
	waits   []Segment         // ordered and disjoint
	cgroups map[string]string // by state, by the host's files
}

type work struct {
	recording.Event
	recording.WorkDetail
}

// tappedNodes collects it by node. A server's other threads (I/O, background) are left out: calls do not wait for them,
// but for the thread that does.
func tappedNodes(rec *recording.Recording) map[string]*tapped {
	type wait struct {
		recording.Event
		recording.ThreadDetail
	}
	works, waits := map[string][]work{}, map[string][]wait{}
	for _, e := range rec.Events {
		if e.Source != recording.SourceTap || e.DurationNs <= 0 || strings.HasPrefix(e.Subject,
			recording.ProcessPrefix) {
			continue
		}
		if e.Kind == recording.KindWork {
			works[e.Subject] = append(works[e.Subject], work{e, recording.DetailOf[recording.WorkDetail](e)})
		} else if _, ok := rank[e.Kind]; ok {
			waits[e.Subject] = append(waits[e.Subject], wait{e, recording.DetailOf[recording.ThreadDetail](e)})
		}
	}
	out := map[string]*tapped{}
	for _, node := range rec.Nodes() {
		if len(works[node]) == 0 && len(waits[node]) == 0 {
			continue // nobody looked, or the thread has not run since: it has no clock before it does
		}
		did, first := map[int]int64{}, 0
		for _, w := range works[node] {
			did[w.TID] += w.DurationNs
		}
		for _, w := range waits[node] {
			did[w.TID] += 0
		}
		for tid, ns := range did {
			// Where none was seen at work: the first thread of a process has the lowest number.
			if first == 0 || ns > did[first] || ns == did[first] && tid < first {
				first = tid
			}
		}
		if pid := processOf(rec, node); did[pid] > 0 || pid != 0 && len(works[node]) == 0 {
			first = pid
		}
		if first == 0 {
			continue
		}
		t := &tapped{}
		for _, w := range works[node] {
			if w.TID == first {
				t.works = append(t.works, w)
			}
		}
		for _, w := range waits[node] {
			if w.ThreadDetail.TID == first {
				t.waits = append(t.waits, Segment{
					Server, w.Kind, w.TimeNs, w.TimeNs + w.Event.DurationNs,
					waitText(w.Kind, w.ThreadDetail), -1,
				})
			}
		}
		t.waits = inLine(t.waits)
		out[node] = t
	}
	return out
}

// processOf is the process of a node's server, by the files of its host; 0 where unknown.
func processOf(rec *recording.Recording, node string) int {
	var p struct {
		PID int `json:"pid"`
	}
	if s, found := rec.SnapshotOf(recording.SourceHost, node, "process"); found && json.Unmarshal([]byte(s.Body),
		&p) == nil {
		return p.PID
	}
	return 0
}

// exact makes the line of each node that the kernel source saw, and keeps it for the causes.
func (l *Ledger) exact(rec *recording.Recording, nodes map[string]*tapped) map[string][]Segment {
	l.lines = map[string][]Segment{}
	for node, t := range nodes {
		t.nameCgroups(rec, node)
		l.lines[node] = t.line(node, l.Suspects)
	}
	return l.lines
}

// Exact is what the kernel source saw of the main thread of a node's server: its waits, and its work of 0.2 ms and
// more, ordered and disjoint; nil where it did not see it.
func (l *Ledger) Exact(node string) []Segment { return l.lines[node] }

// nameCgroups takes the names of the cgroups where the kernel source does not tell them from the host's.
func (t *tapped) nameCgroups(rec *recording.Recording, node string) {
	t.cgroups = map[string]string{}
	for _, kind := range []string{recording.KindThrottled, recording.KindFrozen} {
		for _, e := range rec.EventsOf(recording.SourceHost, node, kind) {
			if d := recording.DetailOf[recording.ThreadDetail](e); d.Cgroup != "" {
				t.cgroups[kind] = d.Cgroup
			}
		}
	}
	for i, w := range t.waits {
		if w.Culprit == "" {
			t.waits[i].Culprit = t.cgroups[w.State]
		}
	}
}

// line is what the thread did and waited for, ordered and disjoint, with the suspects among it.
func (t *tapped) line(node string, suspects []Suspect) []Segment {
	suspected := map[int64]int{}
	for i, s := range suspects {
		if s.Source == recording.SourceTap && s.Node == node {
			suspected[s.FromNs] = i
		}
	}
	var works []Segment
	for _, w := range t.works {
		s := Segment{Server, Busy, w.TimeNs, w.TimeNs + w.DurationNs, workText(w.WorkDetail), -1}
		if i, ok := suspected[w.TimeNs]; ok {
			s.State, s.Culprit, s.Suspect = stateOf(suspects[i]), suspects[i].Text, i
		}
		works = append(works, s)
	}
	return weave(t.waits, inLine(works))
}

// waitText is the culprit of a wait.
func waitText(kind string, d recording.ThreadDetail) string {
	switch {
	case kind == recording.KindBlocked:
		return d.Call()
	case kind == recording.KindRunQueue && d.By != nil && d.By.PID != 0:
		return named(d.By.Comm, d.By.PID)
	}
	return d.Holder()
}

// inLine orders segments of one thread and makes them disjoint.
func inLine(segs []Segment) []Segment {
	sort.SliceStable(segs, func(i, j int) bool { return segs[i].FromNs < segs[j].FromNs })
	out, end := segs[:0], int64(-1<<62)
	for _, s := range segs {
		if s.FromNs = max(s.FromNs, end); s.FromNs < s.ToNs {
			out = append(out, s)
			end = s.ToNs
		}
	}
	return out
}

// weave puts work around the waits in its middle: while a thread waits it does nothing.
func weave(waits, works []Segment) []Segment {
	out := make([]Segment, 0, len(waits)+len(works))
	i, end := 0, int64(-1<<62)
	for _, w := range works {
		for i < len(waits) && waits[i].ToNs <= w.FromNs {
			out = append(out, waits[i])
			end = waits[i].ToNs
			i++
		}
		at := max(w.FromNs, end)
		for i < len(waits) && waits[i].FromNs < w.ToNs {
			if waits[i].FromNs > at {
				out = append(out, cut(w, at, waits[i].FromNs))
			}
			out = append(out, waits[i])
			at = waits[i].ToNs
			end = at
			i++
		}
		if at < w.ToNs {
			out = append(out, cut(w, at, w.ToNs))
		}
	}
	return append(out, waits[i:]...)
}

// overlay puts a line of exact segments over those of a call: over time in which a server can be what is waited for,
// and beside time in which it is known to work, what it worked on.
func (c *canvas) overlay(line []Segment) { c.weave(line, over) }

// weave puts an ordered and disjoint line over the segments of a call; how says what becomes of a part that one lies
// over.
func (c *canvas) weave(line []Segment, how func(g, exact Segment) (Segment, bool)) {
	var out []Segment
	for _, g := range c.segs {
		at := g.FromNs
		for i := sort.Search(len(line), func(i int) bool { return line[i].ToNs > g.FromNs }); i < len(line) &&
			line[i].FromNs < g.ToNs; i++ {
			s, ok := how(g, line[i])
			if !ok {
				continue
			}
			from, to := max(line[i].FromNs, g.FromNs), min(line[i].ToNs, g.ToNs)
			if at < from {
				out = append(out, cut(g, at, from))
			}
			out = append(out, cut(s, from, to))
			at = to
		}
		if at < g.ToNs {
			out = append(out, cut(g, at, g.ToNs))
		}
	}
	c.segs = out
}

// over is what becomes of a part of a call's segment that an exact one lies over.
func over(g, exact Segment) (Segment, bool) {
	switch {
	case waitsForServer(g):
		return exact, true
	case g.Actor == Server && (g.State == Busy || g.State == Exec) && g.Suspect < 0 && exact.Suspect >= 0:
		g.Culprit, g.Suspect = exact.Culprit, exact.Suspect
		return g, true
	}
	return g, false
}
