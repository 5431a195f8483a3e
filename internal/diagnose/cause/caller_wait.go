package cause

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/recording"
)

// threads is what the threads of a calling process went through, each wait exact in time.
type threads struct {
	pid         int
	throttled   spans // at least one of them had used up the quota; all of a cgroup do together
	queued      spans // at least one of them was ready and had no CPU
	collecting  spans // its runtime collected garbage
	throttledNs int64 // sums over its threads
	queuedNs    int64
	by          map[string]int64 // who had the CPU meanwhile
	ownNs       int64            // of queuedNs: its own threads had it
	quotas      map[quota]int64  // time throttled, by what held them, where that is known
	heldComm    map[string]int64 // time throttled, by the name of the thread
}

// quota is a CPU quota in cores, and the cgroup that has it.
type quota struct {
	cgroup string
	cores  float64
}

// heldBy is the quota that the threads were throttled by for most of that time; the zero quota where none is known.
func (t *threads) heldBy() (most quota) {
	for q, ns := range t.quotas {
		if best := t.quotas[most]; ns > best || ns == best && q.cgroup < most.cgroup {
			most = q
		}
	}
	return most
}

// spans are stretches of time, disjoint and in order.
type spans [][2]int64

func merge(list spans) spans {
	sort.Slice(list, func(i, j int) bool { return list[i][0] < list[j][0] })
	var out spans
	for _, s := range list {
		if k := len(out) - 1; k >= 0 && s[0] <= out[k][1] {
			out[k][1] = max(out[k][1], s[1])
			continue
		}
		out = append(out, s)
	}
	return out
}

// in is how much of [from, to) they cover.
func (s spans) in(from, to int64) (ns int64) {
	for i := sort.Search(len(s), func(i int) bool { return s[i][1] > from }); i < len(s) && s[i][0] < to; i++ {
		ns += min(s[i][1], to) - max(s[i][0], from)
	}
	return ns
}

func (s spans) ns() (ns int64) {
	for _, x := range s {
		ns += x[1] - x[0]
	}
	return ns
}

// threadsOf collects the waits of every calling process, once.
func (c *Case) threadsOf() map[int]*threads {
	if c.threads == nil {
		c.threads = collectThreads(c.Rec)
	}
	return c.threads
}

func collectThreads(rec *recording.Recording) map[int]*threads {
	out := map[int]*threads{}
	for _, e := range rec.Events {
		text, ok := strings.CutPrefix(e.Subject, recording.ProcessPrefix)
		pid, err := strconv.Atoi(text)
		if e.Source != recording.SourceTap || !ok || err != nil {
			continue
		}
		t := out[pid]
		if t == nil {
			t = &threads{pid: pid, by: map[string]int64{}, quotas: map[quota]int64{}, heldComm: map[string]int64{}}
			out[pid] = t
		}
		s := [2]int64{e.TimeNs, e.TimeNs + e.DurationNs}
		switch e.Kind {
		case recording.KindThrottled:
			t.throttled, t.throttledNs = append(t.throttled, s), t.throttledNs+e.DurationNs
			d := recording.DetailOf[recording.ThreadDetail](e)
			t.heldComm[d.Comm] += e.DurationNs
			if d.Cgroup != "" {
				t.quotas[quota{d.Cgroup, d.Cores}] += e.DurationNs
			}
		case recording.KindCollection:
			t.collecting = append(t.collecting, s)
		case recording.KindRunQueue:
			t.queued, t.queuedNs = append(t.queued, s), t.queuedNs+e.DurationNs
			if by := recording.DetailOf[recording.ThreadDetail](e).By; by != nil && by.PID != 0 {
				t.by[fmt.Sprintf("%s[%d]", by.Comm, by.PID)] += e.DurationNs
				if by.PID == pid {
					t.ownNs += e.DurationNs
				}
			}
		}
	}
	for _, t := range out {
		t.throttled, t.queued, t.collecting = merge(t.throttled), merge(t.queued), merge(t.collecting)
	}
	return out
}

// late is what a cause explains of the time between replies and their readers, and of which processes.
type late struct {
	Claim
	PIDs []int // those that lost most first
	ns   map[int]int64
}

// late claims time of slow calls at their client's end: of measures one segment. It is nil where it was too rare for a
// pattern. The whole process stands where all of its threads do, or the only one that calls.
func (n *Node) late(whole bool, of func(*threads, account.Segment) int64) *late {
	all := n.threadsOf()
	l := &late{ns: map[int]int64{}}
	calls, stood := map[int]int64{}, map[int]spans{}
	l.Claim = n.claimOf(func(a account.Account) int64 {
		pid := pidOf(a.Call.Client)
		if pid == 0 {
			return 0
		}
		t := all[pid]
		if t == nil {
			t = &threads{pid: pid}
		}
		var ns int64
		for _, s := range a.Segments {
			if s.Actor != account.Client {
				continue
			}
			part := of(t, s)
			ns += part
			if part > 0 && (whole || n.loop(pid)) {
				stood[pid] = append(stood[pid], [2]int64{s.ToNs - part, s.ToNs})
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
	if l.Calls < healthyMinCalls || l.MaxNs < healthyMaxNs && !n.often(calls, stood) &&
		float64(l.Users.Calls) <= healthyMaxShare*float64(l.Users.Of) {
		return nil
	}
	return l
}

// often reports whether the late calls of some process are more than what a healthy one may have, or whether it stood
// for so long: what it wanted to call meanwhile was not even sent, and was delayed with them.
func (n *Node) often(late map[int]int64, stood map[int]spans) bool {
	for _, s := range stood {
		if float64(merge(s).ns()) > healthyMaxShare*n.Seconds()*1e9 {
			return true
		}
	}
	for _, c := range n.callers() {
		if k := late[c.PID]; k > 0 && float64(k) > healthyMaxShare*float64(c.calls()) {
			return true
		}
	}
	return false
}

// pidOf is the process of "redis-cli[1234]".
func pidOf(client string) int {
	_, text, _ := strings.Cut(strings.TrimSuffix(client, "]"), "[")
	pid, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return pid
}

// Where a reply has arrived and is not read yet, these two say only that no wait of the thread that read it is known:
// in a runtime that moves work between threads (Go, the JVM's pools) it was not the one to wait for.
func unread(s account.Segment) bool {
	return s.State == recording.Receive || s.State == recording.OffCPU
}

// loop reports whether one thread reads all replies of a process: its time between a reply and the read is that
// thread's.
func (n *Node) loop(pid int) bool {
	subject := fmt.Sprintf("%s%d", recording.ProcessPrefix, pid)
	if readers, ok := n.Rec.Series(recording.SourceTap, subject, "readers").Last(); ok {
		return readers == 1
	}
	threads, ok := n.Rec.Series(recording.SourceHost, subject, "threads").Max()
	return ok && threads == 1
}

// process is a series about a client's process.
func (n *Node) process(pid int, name string) recording.Series {
	return n.Rec.Series(recording.SourceHost, fmt.Sprintf("%s%d", recording.ProcessPrefix, pid), name)
}

// callerOf finds a process among the callers.
func (n *Node) callerOf(pid int) *Caller {
	for _, c := range n.callers() {
		if c.PID == pid {
			return c
		}
	}
	for _, call := range n.Rec.Calls { // its connections were not seen
		if call.Client != "" && pidOf(call.Client) == pid {
			comm, _, _ := strings.Cut(call.Client, "[")
			return &Caller{Name: call.Client, PID: pid, Comm: comm}
		}
	}
	return &Caller{Name: fmt.Sprintf("process %d", pid), PID: pid}
}

// cgroupOf is the CPU cgroup of a client's process; empty where the host source did not look.
func (n *Node) cgroupOf(pid int) string {
	s, ok := n.Rec.SnapshotOf(recording.SourceHost, fmt.Sprintf("%s%d", recording.ProcessPrefix, pid), "process")
	if !ok {
		return ""
	}
	return stringField(s.Body, "cgroup")
}

// lateCalls is the evidence that every cause at the client's end has: how many calls, whose, and that the reply was
// there.
func (f *Finding) lateCalls(n *Node, l *late, why string) *Caller {
	c := n.callerOf(l.PIDs[0])
	more := ""
	if k := len(l.PIDs) - 1; k > 0 {
		more = fmt.Sprintf(" and %d other processes", k)
	}
	f.support(recording.SourceTap, fmt.Sprintf("the replies to %d of %d slow calls were in the sockets of %s%s, on "+
		"%d connections, %s: up to %s in one call",
		l.Calls, len(n.Ledger.Slow), c.Name, more, n.slowConns(c.PID), why, dur(l.MaxNs)), float64(l.Calls), "calls")
	return c
}

// slowConns is how many connections of a process had slow calls.
func (n *Node) slowConns(pid int) int {
	conns := map[string]bool{}
	for _, a := range n.Ledger.Slow {
		if pidOf(a.Call.Client) == pid {
			conns[a.Call.Conn] = true
		}
	}
	return len(conns)
}
