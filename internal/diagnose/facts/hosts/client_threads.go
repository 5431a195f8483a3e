package hosts

import (
	"strconv"
	"strings"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
)

// Threads is what the threads of a calling process went through, each wait exact in time.
type Threads struct {
	// PID is the id of the process.
	PID int
	// Throttled is when at least one thread had used up the CPU quota; all threads of a cgroup do together.
	Throttled facts.Spans
	// Queued is when at least one thread was in the run queue, and neither a watched server nor slowpath had the CPU:
	// these are on a host of their own where a client is alone with what it shares CPUs with.
	Queued facts.Spans
	// Collecting is when the runtime collected garbage.
	Collecting facts.Spans
	// ThrottledNs is the time of Throttled in nanoseconds, summed over the threads.
	ThrottledNs int64
	// QueuedNs is the time of Queued in nanoseconds, summed over the threads.
	QueuedNs int64
	// CPUHolders is the time in nanoseconds by the other process that had the CPU while a thread was in the run queue.
	CPUHolders map[string]int64
	// QueuedBehindOwnNs is the part of QueuedNs in which threads of the same process had the CPU.
	QueuedBehindOwnNs int64
	// time throttled by quota, where that is known
	quotas map[Quota]int64
	// ThrottledByComm is the time throttled in nanoseconds by the name of the thread.
	ThrottledByComm map[string]int64
}

// Quota is a CPU quota.
type Quota struct {
	// Cgroup is the path of the cgroup that has it.
	Cgroup string
	// Cores is the quota in cores.
	Cores float64
}

// MainQuota is the quota that throttled the threads for most of that time; the zero Quota where none is known.
func (t *Threads) MainQuota() (most Quota) {
	for q, ns := range t.quotas {
		if best := t.quotas[most]; ns > best || ns == best && q.Cgroup < most.Cgroup {
			most = q
		}
	}
	return most
}

// ProcessThreads are the waits of every calling process by its id.
func ProcessThreads(c *facts.Case) map[int]*Threads { return facts.Once(c, "threads", collectThreads) }

func collectThreads(c *facts.Case) map[int]*Threads {
	out, watched := map[int]*Threads{}, OwnPIDs(c)
	for _, n := range c.Nodes {
		watched[ServerPID(n)] = true
	}
	delete(watched, 0)
	for _, e := range c.Rec.Events {
		text, ok := strings.CutPrefix(e.Subject, recording.ProcessPrefix)
		pid, err := strconv.Atoi(text)
		if e.Source != recording.SourceTap || !ok || err != nil {
			continue
		}
		t := out[pid]
		if t == nil {
			t = &Threads{
				PID: pid, CPUHolders: map[string]int64{}, quotas: map[Quota]int64{},
				ThrottledByComm: map[string]int64{},
			}
			out[pid] = t
		}
		s := facts.Span{FromNs: e.TimeNs, ToNs: e.TimeNs + e.DurationNs}
		switch e.Kind {
		case recording.KindThrottled:
			t.Throttled, t.ThrottledNs = append(t.Throttled, s), t.ThrottledNs+e.DurationNs
			d := recording.DetailOf[recording.ThreadDetail](e)
			t.ThrottledByComm[d.Comm] += e.DurationNs
			if d.Cgroup != "" {
				t.quotas[Quota{d.Cgroup, d.Cores}] += e.DurationNs
			}
		case recording.KindCollection:
			t.Collecting = append(t.Collecting, s)
		case recording.KindRunQueue:
			t.QueuedNs += e.DurationNs
			by := recording.DetailOf[recording.ThreadDetail](e).By
			if by == nil || !watched[by.PID] {
				t.Queued = append(t.Queued, s)
			}
			if by != nil && by.PID != 0 {
				if by.PID == pid {
					t.QueuedBehindOwnNs += e.DurationNs
				} else {
					t.CPUHolders[ProcessName(c, by.PID, by.Comm)] += e.DurationNs
				}
			}
		}
	}
	for _, t := range out {
		t.Throttled, t.Queued, t.Collecting = facts.MergeSpans(t.Throttled), facts.MergeSpans(t.Queued),
			facts.MergeSpans(t.Collecting)
	}
	return out
}
