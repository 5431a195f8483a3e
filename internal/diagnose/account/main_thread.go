package account

import (
	"cmp"
	"fmt"
	"sort"
	"strings"

	"slowpath/internal/recording"
)

// mainThread is what the tap saw of the thread that serves the calls of one node.
type mainThread struct {
	works   []work
	waits   []Segment         // ordered and disjoint
	cgroups map[string]string // by state, by the host's files
}

// work is what the thread did from one socket event to the next.
type work struct {
	recording.Event
	recording.ActivityDetail
}

// wait is a time in which the thread did not run.
type wait struct {
	recording.Event
	recording.ThreadDetail
}

// mainThreads are those of the nodes that the tap saw. A server's other threads (I/O, background) are left out: calls
// do not wait for them, but for the thread that does.
func mainThreads(rec *recording.Recording) map[string]*mainThread {
	works, waits := map[string][]work{}, map[string][]wait{}
	for _, e := range rec.Events {
		if e.Source != recording.SourceTap || e.DurationNs <= 0 ||
			strings.HasPrefix(e.Subject, recording.ProcessPrefix) {
			continue
		}
		if e.Kind == recording.KindActivity {
			works[e.Subject] = append(works[e.Subject], work{e, recording.DetailOf[recording.ActivityDetail](e)})
		} else if _, ok := stateRank[e.Kind]; ok {
			waits[e.Subject] = append(waits[e.Subject], wait{e, recording.DetailOf[recording.ThreadDetail](e)})
		}
	}
	out := map[string]*mainThread{}
	for _, node := range rec.Nodes() {
		if len(works[node]) == 0 && len(waits[node]) == 0 {
			continue // the tap did not watch it, or the thread has not run since: it has no clock before it does
		}
		if tid := findTID(rec, node, works[node], waits[node]); tid != 0 {
			out[node] = newMainThread(rec, node, tid, works[node], waits[node])
		}
	}
	return out
}

// findTID is the thread that did most of the work, 0 where unknown; where none was seen at work, the one with the
// lowest number, which a process starts with. The host's files know better, if that thread worked at all.
func findTID(rec *recording.Recording, node string, works []work, waits []wait) int {
	workedNs := map[int]int64{} // by thread
	for _, w := range works {
		workedNs[w.TID] += w.DurationNs
	}
	for _, w := range waits {
		workedNs[w.ThreadDetail.TID] += 0
	}
	tid := 0
	for t, ns := range workedNs {
		if tid == 0 || ns > workedNs[tid] || ns == workedNs[tid] && t < tid {
			tid = t
		}
	}
	if loop := loopThreadOf(rec, node); workedNs[loop] > 0 || loop != 0 && len(works) == 0 {
		return loop
	}
	return tid
}

// loopThreadOf is the thread with the event loop of a node's process, by the files of its host: the first one, where
// they name no other; 0 where unknown.
func loopThreadOf(rec *recording.Recording, node string) int {
	s, _ := rec.SnapshotOf(recording.SourceHost, node, "process")
	p, _ := recording.BodyOf[struct {
		PID  int `json:"pid"`
		Loop int `json:"loop_tid"`
	}](s)
	return cmp.Or(p.Loop, p.PID)
}

func newMainThread(rec *recording.Recording, node string, tid int, works []work, waits []wait) *mainThread {
	t := &mainThread{cgroups: hostCgroups(rec, node)}
	for _, w := range works {
		if w.TID == tid {
			t.works = append(t.works, w)
		}
	}
	for _, w := range waits {
		if w.TID != tid {
			continue
		}
		t.waits = append(t.waits, Segment{
			Server, w.Kind, w.TimeNs, w.TimeNs + w.DurationNs,
			cmp.Or(waitText(w.Kind, w.ThreadDetail), t.cgroups[w.Kind]), -1,
		})
	}
	t.waits = disjoint(t.waits)
	return t
}

// hostCgroups are the names of the cgroups that held the server, by state, for where the tap does not know them.
func hostCgroups(rec *recording.Recording, node string) map[string]string {
	cgroups := map[string]string{}
	for _, kind := range []string{recording.KindThrottled, recording.KindFrozen} {
		for _, e := range rec.EventsOf(recording.SourceHost, node, kind) {
			if d := recording.DetailOf[recording.ThreadDetail](e); d.Cgroup != "" {
				cgroups[kind] = d.Cgroup
			}
		}
	}
	return cgroups
}

// waitText is the culprit of a wait.
func waitText(kind string, d recording.ThreadDetail) string {
	switch {
	case kind == recording.KindBlocked:
		return d.Call()
	case kind == recording.KindRunQueue && d.By != nil && d.By.PID != 0:
		return fmt.Sprintf("%s[%d]", d.By.Comm, d.By.PID)
	}
	return d.Holder()
}

// disjoint orders segments of one thread and makes them disjoint.
func disjoint(segs []Segment) []Segment {
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
