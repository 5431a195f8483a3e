//go:build linux

package bench

import "fmt"

// notes are the sentences without which the figures would mislead.
func (s *summary) notes(r *Result) []string {
	var out []string
	note := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if r.Settings.Loop == Closed {
		with := "--rate"
		if r.Replay != nil {
			with = "--replay-speed 1"
		}
		note("Closed loop: while the server stalls nothing is sent, so these latencies cannot show what users would "+
			"have felt during a stall; %s can.", with)
	}
	if r.Settings.BusyPoll {
		note("Busy polling: the generator spins on %s instead of sleeping, so latencies leave out the wake-up that a "+
			"usual client has.", threads(r.Settings.Threads))
	}
	if g := r.Generator; !r.Settings.BusyPoll && g.WorkersSpunNs > g.WorkersCPUNs/10 {
		note("Calls are due sooner one after the other than the generator could wake up: it spun for %.0f %% of its "+
			"CPU time instead of sleeping, so latencies leave out the wake-up that a usual client has.",
			100*float64(g.WorkersSpunNs)/float64(g.WorkersCPUNs))
	}
	// else the limit says it
	if n := r.Schedule; n != nil && n.LateP99Ns > int64(KeptWithin) && !r.Limit.GeneratorLimited {
		note("The schedule was not kept within %s: the generator sent 1 %% of the calls %s or more after their time, "+
			"and their latency has that delay. %s", spelled(int64(KeptWithin)), spelled(n.LateP99Ns), sooner(r))
	}
	if r.Settings.Loop == Open && parted(r) {
		note("The two times part: 1 %% of the calls took %s or more from when they were due, and %s from when they "+
			"were sent. The rest they waited for a connection with room, as users would: add connections, or find "+
			"what stalls the server.", spelled(r.Latency.P99Ns), spelled(r.Service.P99Ns))
	}
	if n := r.Unanswered.Unsent; n > 0 {
		note("%s due by the schedule and never sent, since all connections were busy: counted with their age at the "+
			"end, which is less than they would have taken.", wereCalls(n))
	}
	if n := r.Unanswered.InFlight; n > 0 {
		note("%s without a reply at the end: counted with their age, which is less than they would have taken.",
			wereCalls(n))
	}
	if n := r.Errors["MOVED"]; n > 0 && r.Routing == nil {
		note("The target is a node of a cluster, and %d calls were for slots of other nodes: -c sends each to its own.",
			n)
	}
	out = append(out, fixes(r)...)
	if n := r.Unanswered.Failed; n > 0 {
		note("%s without a reply, because their connection ended or they timed out: they are in no latency, and "+
			"whether the server executed them is not known.", wereCalls(n))
	}
	if all := r.Misses > 0 && r.Misses == reads(s, r); all && r.Replay != nil {
		note("All reads missed: the keys do not exist. A replay finds only what the log itself wrote.")
	} else if all {
		note("All reads missed: the keys do not exist. --prefill writes them first.")
	}
	return out
}

// sooner is how a generator that was late would be on time.
func sooner(r *Result) string {
	if !r.Settings.BusyPoll && r.Limit.GeneratorSleeps() {
		return "Its threads had time left, and a CPU when they were ready, so that it is the waking up that takes so " +
			"long: --busy-poll does not sleep."
	}
	return "Give it more threads, or CPUs of its own."
}

// parted: the wait before the send is more than half of the time of the slow calls, and more than the generator's own
// delay.
func parted(r *Result) bool {
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

func wereCalls(n int64) string {
	if n == 1 {
		return "1 call was"
	}
	return fmt.Sprintf("%d calls were", n)
}

func threads(n int) string {
	if n == 1 {
		return "one CPU"
	}
	return fmt.Sprintf("%d CPUs", n)
}
