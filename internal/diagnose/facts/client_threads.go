package facts

import (
	"fmt"
	"strconv"
	"strings"

	"slowpath/internal/recording"
)

// Threads is what the threads of a calling process went through, each wait exact in time.
type Threads struct {
	PID               int
	Throttled         Spans // at least one of them had used up the quota; all of a cgroup do together
	Queued            Spans // at least one of them was ready and had no CPU
	Collecting        Spans // its runtime collected garbage
	ThrottledNs       int64 // sums over its threads
	QueuedNs          int64
	CPUHolders        map[string]int64 // who had the CPU meanwhile
	QueuedBehindOwnNs int64            // of queuedNs: its own threads had it
	quotas            map[Quota]int64  // time throttled, by what held them, where that is known
	ThrottledByComm   map[string]int64 // time throttled, by the name of the thread
}

// quota is a CPU quota in cores, and the cgroup that has it.
type Quota struct {
	Cgroup string
	Cores  float64
}

// HeldBy is the quota that the threads were throttled by for most of that time; the zero quota where none is known.
func (t *Threads) MainQuota() (most Quota) {
	for q, ns := range t.quotas {
		if best := t.quotas[most]; ns > best || ns == best && q.Cgroup < most.Cgroup {
			most = q
		}
	}
	return most
}

// ThreadsOf collects the waits of every calling process, once.
func (c *Case) ProcessThreads() map[int]*Threads {
	if c.threads == nil {
		c.threads = collectThreads(c.Rec)
	}
	return c.threads
}

func collectThreads(rec *recording.Recording) map[int]*Threads {
	out := map[int]*Threads{}
	for _, e := range rec.Events {
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
		s := Span{e.TimeNs, e.TimeNs + e.DurationNs}
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
			t.Queued, t.QueuedNs = append(t.Queued, s), t.QueuedNs+e.DurationNs
			if by := recording.DetailOf[recording.ThreadDetail](e).By; by != nil && by.PID != 0 {
				t.CPUHolders[fmt.Sprintf("%s[%d]", by.Comm, by.PID)] += e.DurationNs
				if by.PID == pid {
					t.QueuedBehindOwnNs += e.DurationNs
				}
			}
		}
	}
	for _, t := range out {
		t.Throttled, t.Queued, t.Collecting = MergeSpans(t.Throttled), MergeSpans(t.Queued), MergeSpans(t.Collecting)
	}
	return out
}
