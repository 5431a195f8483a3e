package account

import (
	"slices"
	"sort"

	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// stateRank orders the states of a main thread: a thread that is frozen is not throttled.
var stateRank = map[string]int{
	recording.KindFrozen: 0, recording.KindThrottled: 1, recording.KindBlocked: 2,
	recording.KindRunQueue: 3, recording.KindBusy: 4,
}

// MinSeenBusyNs: the host source reports every time of at least 10 ms on the CPU; with its sampling interval, what is
// longer than this cannot have gone unseen.
// Bound: slowpath, the host source reports 10 ms and more, and samples as often.
const MinSeenBusyNs = int64(20e6)

// hostStates are the states of the main threads that the host source sampled.
type hostStates struct {
	watched map[string]bool        // by node
	states  map[string][]hostState // by node, ordered by rank, then time
	index   map[string]*timeIndex
}

type hostState struct {
	Segment
	// share of the segment that was in this state; where in it is not known. All of it where not between 0 and 1.
	share float64
}

// readHostStates leaves out what the tap saw better. Of a server behind a proxy it sees the proxy's thread.
func readHostStates(rec *recording.Recording, threads map[string]*mainThread, proxied map[string]bool) *hostStates {
	h := &hostStates{map[string]bool{}, map[string][]hostState{}, map[string]*timeIndex{}}
	for _, node := range rec.Nodes() {
		h.watched[node] = len(rec.Of(series.MainRun, node)) > 0
	}
	throttled := map[string]bool{} // by the tap
	for node, t := range threads {
		throttled[node] = slices.ContainsFunc(t.waits, func(s Segment) bool { return s.State == Throttled })
	}
	for _, e := range rec.Events {
		if _, is := stateRank[e.Kind]; e.Source != recording.SourceHost || !is {
			continue
		}
		// Kernels that do not report which task is throttled have it run as one that waits for a CPU.
		if threads[e.Subject] != nil && !proxied[e.Subject] && e.Kind != recording.KindBusy &&
			(e.Kind != recording.KindThrottled || throttled[e.Subject]) {
			continue
		}
		h.states[e.Subject] = append(h.states[e.Subject], newHostState(e))
	}
	for node, ss := range h.states {
		sort.SliceStable(ss, func(i, j int) bool { return stateRank[ss[i].State] < stateRank[ss[j].State] })
		h.index[node] = newTimeIndex(len(ss), func(i int) (int64, int64) { return ss[i].FromNs, ss[i].ToNs })
	}
	return h
}

func newHostState(e recording.Event) hostState {
	d := recording.DetailOf[recording.ThreadDetail](e)
	s := hostState{Segment{Server, e.Kind, e.TimeNs, e.TimeNs + e.DurationNs, "", -1}, d.Share}
	switch e.Kind {
	case recording.KindThrottled, recording.KindFrozen:
		s.Culprit = d.Cgroup
	case recording.KindBlocked:
		s.Culprit = d.Call()
	}
	return s
}

// part is the share as a factor.
func (s hostState) part() float64 {
	if s.share > 0 && s.share < 1 {
		return s.share
	}
	return 1
}

// during are the states that overlap [fromNs, toNs), those in which the thread worked apart.
func (h *hostStates) during(node string, fromNs, toNs int64) (stopped, busy []Segment) {
	for _, i := range h.index[node].touching(fromNs, toNs) {
		s := h.states[node][i].in(fromNs, toNs)
		if s.State == Busy {
			busy = append(busy, s)
		} else {
			stopped = append(stopped, s)
		}
	}
	return stopped, busy
}

// in is the state as a segment of [fromNs, toNs). Of a state that was not all of the time, the share comes first.
func (s hostState) in(fromNs, toNs int64) Segment {
	if part := s.part(); part < 1 {
		from := max(s.FromNs, fromNs)
		s.ToNs = from + int64(float64(min(s.ToNs, toNs)-from)*part)
	}
	return s.Segment
}
