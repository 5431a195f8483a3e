package facts

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	"slowpath/internal/diagnose/account"
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

// Spans are stretches of time, disjoint and in order.
type Spans []Span

func MergeSpans(list Spans) Spans {
	sort.Slice(list, func(i, j int) bool { return list[i].FromNs < list[j].FromNs })
	var out Spans
	for _, s := range list {
		if k := len(out) - 1; k >= 0 && s.FromNs <= out[k].ToNs {
			out[k].ToNs = max(out[k].ToNs, s.ToNs)
			continue
		}
		out = append(out, s)
	}
	return out
}

// In is how much of [from, to) they cover.
func (s Spans) OverlapNs(from, to int64) (ns int64) {
	for i := sort.Search(len(s), func(i int) bool { return s[i].ToNs > from }); i < len(s) && s[i].FromNs < to; i++ {
		ns += min(s[i].ToNs, to) - max(s[i].FromNs, from)
	}
	return ns
}

func (s Spans) TotalNs() (ns int64) {
	for _, x := range s {
		ns += x.ToNs - x.FromNs
	}
	return ns
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

// Late is what a cause explains of the time between replies and their readers, and of which processes.
type LateReads struct {
	Claim
	PIDs []int // those that lost most first
	ns   map[int]int64
}

// late claims time of slow calls at their client's end: of measures one segment. It is nil where it was too rare for a
// pattern. The whole process stands where all of its threads do, or the only one that calls.
func (n *Node) LateReads(whole bool, of func(*Threads, account.Segment) int64) *LateReads {
	all := n.ProcessThreads()
	l := &LateReads{ns: map[int]int64{}}
	calls, stood := map[int]int64{}, map[int]Spans{}
	l.Claim = n.ClaimOf(func(a account.Account) int64 {
		pid := PIDOf(a.Call.Client)
		if pid == 0 {
			return 0
		}
		t := all[pid]
		if t == nil {
			t = &Threads{PID: pid}
		}
		var ns int64
		for _, s := range a.Segments {
			if s.Actor != account.Client {
				continue
			}
			part := of(t, s)
			ns += part
			if part > 0 && (whole || n.HasSingleReader(pid)) {
				stood[pid] = append(stood[pid], Span{s.ToNs - part, s.ToNs})
			}
		}
		if ns*10 >= a.ExcessNs && ns > 0 {
			calls[pid]++
			l.ns[pid] += ns
		}
		return ns
	})
	for pid := range l.ns {
		l.PIDs = append(l.PIDs, pid)
	}
	sort.Slice(l.PIDs, func(i, j int) bool {
		return l.ns[l.PIDs[i]] > l.ns[l.PIDs[j]] || l.ns[l.PIDs[i]] == l.ns[l.PIDs[j]] && l.PIDs[i] < l.PIDs[j]
	})
	if l.Calls < HealthyMinCalls || l.MaxNs < HealthyMaxNs && !n.often(calls, stood) &&
		float64(l.Users.Calls) <= HealthyMaxShare*float64(l.Users.AllCalls) {
		return nil
	}
	return l
}

// often reports whether the late calls of some process are more than what a healthy one may have, or whether it stood
// for so long: what it wanted to call meanwhile was not even sent, and was delayed with them.
func (n *Node) often(late map[int]int64, stood map[int]Spans) bool {
	for _, s := range stood {
		if float64(MergeSpans(s).TotalNs()) > HealthyMaxShare*n.Seconds()*1e9 {
			return true
		}
	}
	for _, c := range n.Callers() {
		if k := late[c.PID]; k > 0 && float64(k) > HealthyMaxShare*float64(c.AppCalls()) {
			return true
		}
	}
	return false
}

// Where a reply has arrived and is not read yet, these two say only that no wait of the thread that read it is known:
// in a runtime that moves work between threads (Go, the JVM's pools) it was not the one to wait for.
func IsReplyUnread(s account.Segment) bool {
	return s.State == recording.Receive || s.State == recording.OffCPU
}

// CallerOf finds a process among the callers.
func (n *Node) CallerByPID(pid int) *Caller {
	for _, c := range n.Callers() {
		if c.PID == pid {
			return c
		}
	}
	for _, call := range n.Rec.Calls { // its connections were not seen
		if call.Client != "" && PIDOf(call.Client) == pid {
			comm, _, _ := strings.Cut(call.Client, "[")
			return &Caller{Name: call.Client, PID: pid, Comm: comm}
		}
	}
	return &Caller{Name: fmt.Sprintf("process %d", pid), PID: pid}
}

// SlowConns is how many connections of a process had slow calls.
func (n *Node) SlowConnCount(pid int) int {
	conns := map[string]bool{}
	for _, a := range n.Ledger.Slow {
		if PIDOf(a.Call.Client) == pid {
			conns[a.Call.Conn] = true
		}
	}
	return len(conns)
}

// ThrottledOf is the throttled part of the time between a reply and its reader.
func ThrottledUnreadNs(t *Threads, s account.Segment) int64 {
	switch {
	case s.State == account.Throttled:
		return s.Ns()
	case IsReplyUnread(s):
		return t.Throttled.OverlapNs(s.FromNs, s.ToNs)
	}
	return 0
}
