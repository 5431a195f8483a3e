//go:build linux

package bench

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"slowpath/internal/format"
)

// notes are the sentences without which the result would mislead.
func (s *summary) notes(r *Result) []string {
	var out []string
	note := func(sentence string, args ...any) { out = append(out, fmt.Sprintf(sentence, args...)) }
	if r.Settings.Loop == Closed {
		with := "--rate"
		if r.Replay != nil {
			with = "--replay-speed 1"
		}
		note("Closed loop: while the server stalls nothing is sent, so these latencies cannot show what "+
			"users would wait during a stall; %s can.", with)
	}
	if r.Settings.BusyPoll {
		note("Busy polling: the generator spins on %s instead of sleeping, so latencies lack the wake-up of a "+
			"normal client.", cpus(r.Settings.Threads))
	}
	if g := r.Generator; !r.Settings.BusyPoll && g.WorkersSpunNs > g.WorkersCPUNs/10 {
		note("Calls are due at shorter intervals than the generator could wake up: it spun for %.0f %% of its "+
			"CPU time instead of sleeping, so latencies lack the wake-up of a normal client.",
			100*float64(g.WorkersSpunNs)/float64(g.WorkersCPUNs))
	}
	// else the bottleneck says it
	if n := r.Schedule; n != nil && n.LateP99Ns > int64(KeptWithin) && !r.Bottleneck.GeneratorLimited {
		note("The schedule was not kept within %s: the generator sent 1 %% of the calls %s or more after their time, "+
			"and their latency includes that delay. %s", format.Brief(KeptWithin), format.Brief(n.LateP99Ns),
			latenessFix(r))
	}
	if r.Settings.Loop == Open && timesDiffer(r) {
		note("Latency and service time differ: 1 %% of the calls took %s or more from when they were due, and %s "+
			"from when "+
			"they were sent. In between they waited for a connection with room, as users would: add connections, or "+
			"find what stalls the server.", format.Brief(r.Latency.P99Ns), format.Brief(r.Service.P99Ns))
	}
	if n := r.Unanswered.Unsent; n > 0 {
		note("%s due by the schedule and never sent, since all connections were busy: they count with their age at "+
			"the end, which is less than they would have taken.", callsWere(n))
	}
	if n := r.Unanswered.InFlight; n > 0 {
		note("%s without a reply at the end: they count with their age, which is less than they would have taken.",
			callsWere(n))
	}
	if n := r.Errors["MOVED"]; n > 0 && r.Routing == nil {
		note("The target is a node of a cluster, and %s for slots of other nodes: -c sends each to its "+
			"node.", callsWere(n))
	}
	if r.Routing != nil {
		out = append(out, whileChanged(r)...)
	}
	out = append(out, fixes(r)...)
	if n := r.Unanswered.Failed; n > 0 {
		note("%s without a reply, because their connection was closed or they timed out: they count in no latency, "+
			"and "+
			"it is not known whether the server executed them.", callsWere(n))
	}
	if all := r.Misses > 0 && r.Misses == reads(s, r); all && r.Replay != nil {
		note("All reads missed: the keys do not exist. A replay finds only keys that the log itself wrote.")
	} else if all {
		note("All reads missed: the keys do not exist. --prefill writes them first.")
	}
	return out
}

// whileChanged says in which seconds calls were sent again, or connections and calls failed, since the nodes of the
// target changed, and what that did to the latency; nil: they did not change.
func whileChanged(r *Result) []string {
	if len(r.Routing.Retried) == 0 && r.Connections.Lost == 0 {
		return nil
	}
	var in []string
	var during, others []int64
	follows := false
	for _, s := range r.Series {
		changed := s.Retried > 0 || s.Errors > 0
		switch {
		case !changed:
			others = append(others, s.P99Ns)
		case follows:
			first, _, _ := strings.Cut(in[len(in)-1], "-")
			in[len(in)-1] = fmt.Sprintf("%s-%d", first, s.Second+1)
		default:
			in = append(in, strconv.Itoa(s.Second+1))
		}
		if changed {
			during = append(during, s.P99Ns)
		}
		follows = changed
	}
	if len(during) == 0 {
		return nil
	}
	if len(in) > mostNamed {
		in = append(in[:mostNamed], "…")
	}
	note := fmt.Sprintf("Calls were sent again, or failed, in %s of the load (%s): the highest p99 of these is %s",
		format.Count(len(during), "second"), strings.Join(in, ", "), format.Brief(slices.Max(during)))
	if len(others) > 0 {
		note += fmt.Sprintf(", that of the other seconds %s", format.Brief(slices.Max(others)))
	}
	return []string{note + "."}
}

// mostNamed seconds are named in a note; the series has all.
const mostNamed = 5

// latenessFix is what makes a late generator punctual.
func latenessFix(r *Result) string {
	if !r.Settings.BusyPoll && r.Bottleneck.GeneratorSleeps() {
		return "Its threads had time left, and a CPU when they were ready to run: its wake-ups take that long; " +
			"--busy-poll does not sleep."
	}
	return "Give it more threads, or CPUs of its own."
}

// timesDiffer: the wait before the send is more than half of p99, and more than twice the generator's own delay.
func timesDiffer(r *Result) bool {
	waited := r.Latency.P99Ns - r.Service.P99Ns
	return waited > r.Latency.P99Ns/2 && waited > 2*r.Schedule.LateP99Ns
}

// reads are the calls of ops that read.
func reads(s *summary, r *Result) (n int64) {
	for i, op := range r.Ops {
		if s.Load.Ops()[i].Reads {
			n += op.Requests
		}
	}
	return n
}

func callsWere(n int64) string {
	if n == 1 {
		return "1 call was"
	}
	return fmt.Sprintf("%d calls were", n)
}

func cpus(n int) string {
	if n == 1 {
		return "one CPU"
	}
	return fmt.Sprintf("%d CPUs", n)
}
