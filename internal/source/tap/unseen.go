//go:build linux

package tap

import (
	"slices"

	"slowpath/internal/recording"
)

// loss is something that the programs, or the recorder, could not follow or keep. Count and whole are sums of counters.
type loss struct {
	what, why, enable string
	count, whole      []kernelCounter
	counted           bool // see recording.Unseen
}

// userCalls are all calls of users that were followed to their end, at either end.
var userCalls = []kernelCounter{kernelCounterC_CALLS_SERVER, kernelCounterC_CALLS_CLIENT}

const moreConnections = "--tap-connections, which takes memory for each connection that there is"

// losses is every counter of the programs of which something was not seen. What whole says is the same kind of thing as
// count: calls of calls, connections of connections.
var losses = []loss{
	{
		what: "calls whose reply could not be matched", whole: userCalls,
		why: "their connection was there before the watch, or some of its bytes passed by no system call that shows " +
			"them (io_uring, splice, sendfile)",
		enable: "watch longer; a client or server that reads and writes by read, recv, write, send",
		count: []kernelCounter{
			kernelCounterC_UNALIGNED, kernelCounterC_LOST, kernelCounterC_UNPARSED, kernelCounterC_GAPS,
		},
	},
	{
		what: "calls on connections that were not followed", whole: userCalls,
		why:    "there were more connections than the tap was to follow",
		enable: moreConnections, count: []kernelCounter{kernelCounterC_UNFOLLOWED},
	},
	{
		what: "calls on connections that were left out", whole: []kernelCounter{kernelCounterC_READS}, counted: true,
		why: "all calls would have taken more CPU time of the kernel programs than --tap-budget: some connections, " +
			"drawn at random, stand for all",
		enable: "a higher --tap-budget", count: []kernelCounter{kernelCounterC_LEFT_OUT},
	},
	{
		what: "connections from their begin on", counted: true, whole: []kernelCounter{kernelCounterC_CONNS},
		why:    "there were more connections than the tap was to follow, or the kernel had no memory for them",
		enable: moreConnections, count: []kernelCounter{kernelCounterC_CONNS_FULL, kernelCounterC_NO_MEMORY},
	},
	{
		what: "times of single calls in long pipelines", counted: true, whole: userCalls,
		why:    "more different requests waited on a connection than the tap keeps for one",
		enable: "", count: []kernelCounter{kernelCounterC_MERGED},
	},
	{
		what: "names of commands", counted: true, whole: userCalls,
		why:    "there were more different commands than the tap tells apart",
		enable: "watch one node", count: []kernelCounter{kernelCounterC_OPS_FULL},
	},
	{
		what: "the client's end of connections", counted: true, whole: []kernelCounter{kernelCounterC_CONNS},
		why:    "there were more connections than slots for what one end tells the other",
		enable: moreConnections, count: []kernelCounter{kernelCounterC_PAIRS_FULL},
	},
	{
		what: "which two ends belong together", counted: true, whole: []kernelCounter{kernelCounterC_CONNS},
		why:    "connections of several network namespaces have the same addresses and ports",
		enable: "watch from inside one of them (--container)", count: []kernelCounter{kernelCounterC_AMBIGUOUS},
	},
	{
		what: "what the threads of calls waited for", counted: true, whole: userCalls,
		why:    "there were more threads than the tap keeps clocks for",
		enable: moreConnections, count: []kernelCounter{kernelCounterC_THREADS_FULL},
	},
	{
		what: "when servers' threads had done their work", counted: true,
		whole:  []kernelCounter{kernelCounterC_THREADS},
		why:    "there were more threads of servers than have room for that",
		enable: "watch one node", count: []kernelCounter{kernelCounterC_ENDS_FULL},
	},
	{
		what: "when single segments arrived", counted: true, whole: []kernelCounter{kernelCounterC_SEGMENTS},
		why:    "more segments lay unread in a socket than the tap keeps times for",
		enable: "", count: []kernelCounter{kernelCounterC_MARKS_FULL},
	},
	{
		what: "names of error replies", whole: userCalls, why: "there were more kinds of them than the tap tells apart",
		enable: "watch one node", count: []kernelCounter{kernelCounterC_ERRORS_FULL},
	},
	{
		what: "slow calls, one by one", whole: []kernelCounter{kernelCounterC_SLOW}, counted: true,
		why:    "there were more of them than are reported; all of them are counted",
		enable: "a higher --slow", count: []kernelCounter{kernelCounterC_UNREPORTED},
	},
}

// unseen is what was lost up to now.
func (t *Tap) unseen() (out []recording.Unseen) {
	sum := func(counters []kernelCounter) (n float64) {
		for _, c := range counters {
			n += float64(t.tally.counters[c])
		}
		return n
	}
	add := func(u recording.Unseen) {
		if u.Count > 0 {
			out = append(out, u)
		}
	}
	for _, l := range losses {
		n := sum(l.count)
		u := recording.Unseen{
			What: l.what, Count: n, Of: sum(l.whole) + n, Why: l.why, Enable: l.enable, Counted: l.counted,
		}
		if slices.Contains(l.whole, kernelCounterC_SLOW) || slices.Contains(l.whole, kernelCounterC_SEGMENTS) {
			u.Of = sum(l.whole) // it is among these
		}
		add(u)
	}
	dropped := float64(t.tally.counters[kernelCounterC_DROPPED])
	add(recording.Unseen{
		What: "reports of the kernel's programs", Count: dropped, Of: dropped + float64(t.tally.taken),
		Why:    "they came faster than slowpath read them",
		Enable: "a higher --slow, or a host with a CPU to spare",
	})
	add(recording.Unseen{
		What: "connections and threads that slowpath kept in mind", Count: float64(t.recorder.dropped),
		Of:  float64(t.recorder.dropped) + sum([]kernelCounter{kernelCounterC_CONNS, kernelCounterC_THREADS}),
		Why: "there were more of them than it keeps", Enable: "watch fewer processes: --pid or --comm",
	})
	return out
}

// writeUnseen records it.
func (t *Tap) writeUnseen() {
	now := t.Clock.Now()
	for _, u := range t.unseen() {
		t.Sink.Event(recording.Event{
			TimeNs: now, Source: recording.SourceTap, Subject: recording.SubjectSelf, Kind: recording.KindUnseen,
			Detail: recording.Detail(u),
		})
	}
}
