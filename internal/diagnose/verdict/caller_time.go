package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// CallerTime is where the threads of a process that calls spent their time, from when each was first seen to call.
type CallerTime struct {
	// Source is the tap, or the host: then it is counted from samples of the threads that were seen at a connection to
	// a server, all their time.
	Source  string `json:"source"`
	Name    string `json:"name"`
	PID     int    `json:"pid"`
	Threads int    `json:"threads"`
	// Ns is the time of all threads together, in nanoseconds, and that of Parts together.
	Ns    int64      `json:"ns"`
	Parts []TimePart `json:"parts"` // the longest first
	// Polls are pauses that threads made between two requests that were equal; PollsNs is how long they were together,
	// in nanoseconds, and PollOp is the command.
	Polls   int64  `json:"polls,omitempty"`
	PollsNs int64  `json:"polls_ns,omitempty"`
	PollOp  string `json:"poll_op,omitempty"`
	// Stalls of its event loops: times of at least 10 ms in which one neither waited for events nor read from a socket;
	// how long all and the longest of them were, in nanoseconds.
	Stalls     int64 `json:"stalls,omitempty"`
	StallsNs   int64 `json:"stalls_ns,omitempty"`
	StallMaxNs int64 `json:"stall_max_ns,omitempty"`
	// Outside is what the threads waited for in the parts "peers", "others" and "disk", the longest waits first.
	Outside recording.WaitList `json:"outside,omitempty"`
	// Asked are the requests to other services, those that were under way longest first: how long, whatever the threads
	// did meanwhile, and how many were answered (tap).
	Asked recording.WaitList `json:"asked,omitempty"`
	// OtherThreads of the process were not seen to call (host). It may be that they wait for one that does.
	OtherThreads int `json:"other_threads,omitempty"`
	// Assumed: none of its threads was seen to call (host). These are those that ran.
	Assumed bool `json:"assumed,omitempty"`
	// Processes is how many they are, of KindsOfCallers.
	Processes int `json:"-"`
}

// TimePart is what threads waited for, or that they ran.
type TimePart struct {
	What  string  `json:"what"` // one of TimeParts
	Ns    int64   `json:"ns"`
	Share float64 `json:"share"` // of the time of all threads
}

// TimeParts are what threads of callers spend time with, each with what it is in words.
var TimeParts = []struct{ What, Text string }{
	{"redis", "waiting for replies"},
	{"event-loop", "waiting for the thread that sends and reads for them"},
	{"dial", "waiting for connections"},
	{"lock", "waiting for other threads of the process"},
	{"timer", "asleep by themselves"},
	{"limit", "asleep by themselves or waiting for other threads, up to a time limit"},
	{"events", "waiting for any event"},
	{"peers", "waiting for other services"},
	{"others", "in other system calls"},
	{"cpu", "waiting for a CPU"},
	{"throttled", "throttled by a CPU quota"},
	{"frozen", "stopped"},
	{"disk", "blocked on a disk or memory"},
	{"running", "running"},
}

// callersTime are the processes whose threads the tap saw, or the host sampled, those that waited longest for replies
// and their like first.
func callersTime(c *facts.Case) (out []CallerTime) {
	first, last := map[int]recording.ThreadWaits{}, map[int]recording.ThreadWaits{}
	source := map[int]string{}
	for _, s := range c.Rec.Snapshots {
		text, ok := strings.CutPrefix(s.Subject, recording.ProcessPrefix)
		pid, err := strconv.Atoi(text)
		if !ok || err != nil || s.Name != recording.SnapshotWaits || c.Ledger.IsProxyProcess(pid) {
			continue
		}
		if source[pid] == recording.SourceTap && s.Source != recording.SourceTap {
			continue
		}
		last[pid] = recording.ThreadWaitsOf(s.Body)
		if source[pid] != s.Source {
			source[pid], first[pid] = s.Source, last[pid]
		}
	}
	for pid, w := range last {
		if w.Ns > int64(w.Threads)*(c.EndNs-c.StartNs+int64(degree.Long)) { // counted since before this watch
			w = w.Since(first[pid])
		}
		if w.Ns > 0 {
			out = append(out, callerTime(cmp.Or(hosts.Programs(c)[pid].Name, "a process"), pid, source[pid], w))
		}
	}
	slices.SortFunc(out, func(a, b CallerTime) int {
		return cmp.Or(cmp.Compare(b.waitedNs(), a.waitedNs()), cmp.Compare(a.PID, b.PID))
	})
	return out
}

func callerTime(name string, pid int, source string, w recording.ThreadWaits) CallerTime {
	t := CallerTime{
		Source: source, Name: name, PID: pid, Threads: w.Threads, Ns: w.Ns, Polls: w.Polls, PollsNs: w.PollsNs,
		PollOp: w.PollOp, OtherThreads: w.Others, Assumed: w.Assumed, Outside: w.Outside, Asked: w.Asked,
		Stalls: w.Stalls, StallsNs: w.StallsNs, StallMaxNs: w.StallMax,
	}
	for i, ns := range []int64{
		w.RedisNs, w.LoopNs, w.DialNs, w.LockNs, w.TimerNs, w.LimitNs, w.EventsNs, w.PeersNs, w.OthersNs, w.RunQueueNs,
		w.ThrottledNs, w.FrozenNs, w.BlockedNs, w.RunningNs(),
	} {
		if ns > 0 {
			t.Parts = append(t.Parts, TimePart{TimeParts[i].What, ns, float64(ns) / float64(w.Ns)})
		}
	}
	slices.SortStableFunc(t.Parts, func(a, b TimePart) int { return cmp.Compare(b.Ns, a.Ns) })
	return t
}

// KindsOfCallers joins the processes of one program whose threads do most of the time the same, such as the workers of
// an application: what one of them does otherwise stays apart. PID is 0 where there are several.
func KindsOfCallers(all []CallerTime) (kinds []CallerTime) {
	at := map[callerKind]int{}
	for _, t := range all {
		of := kindOf(t)
		i, known := at[of]
		if !known {
			at[of] = len(kinds)
			t.Processes = 1
			kinds = append(kinds, t)
			continue
		}
		k := &kinds[i]
		k.PID, k.Processes = 0, k.Processes+1
		k.Threads, k.Ns, k.OtherThreads = k.Threads+t.Threads, k.Ns+t.Ns, k.OtherThreads+t.OtherThreads
		k.Parts = joinParts(k.Parts, t.Parts, k.Ns)
		k.Outside, k.Asked = joinWaits(k.Outside, t.Outside), joinWaits(k.Asked, t.Asked)
	}
	return kinds
}

// callerKind is what is the same of processes of one kind: the program, and what its threads do most.
type callerKind struct {
	source, name, most string
	assumed            bool
	pid                int // of one that polls: each is a kind of its own
}

func kindOf(t CallerTime) callerKind {
	of := callerKind{source: t.Source, name: t.Name, assumed: t.Assumed}
	if len(t.Parts) > 0 {
		of.most = t.Parts[0].What
	}
	if t.PollsSaid() != "" {
		of.pid = t.PID
	}
	return of
}

// joinParts are the parts of the time of both, ns in all.
func joinParts(a, b []TimePart, ns int64) (out []TimePart) {
	for _, what := range TimeParts {
		p := TimePart{What: what.What}
		for _, one := range slices.Concat(a, b) {
			if one.What == p.What {
				p.Ns += one.Ns
			}
		}
		if p.Share = float64(p.Ns) / float64(max(ns, 1)); p.Ns > 0 {
			out = append(out, p)
		}
	}
	slices.SortStableFunc(out, func(a, b TimePart) int { return cmp.Compare(b.Ns, a.Ns) })
	return out
}

// joinWaits adds up the waits for each thing.
func joinWaits(a, b recording.WaitList) (all recording.WaitList) {
	for _, w := range slices.Concat(a, b) {
		all.Add(w)
	}
	all.Keep()
	return all
}

// In is the time of a part in nanoseconds.
func (t CallerTime) In(what string) int64 {
	for _, p := range t.Parts {
		if p.What == what {
			return p.Ns
		}
	}
	return 0
}

// waitedNs is how long the threads waited for what has to do with calls, in nanoseconds.
func (t CallerTime) waitedNs() int64 {
	return t.In("redis") + t.In("event-loop") + t.In("dial") + t.PollsNs
}

// pollOps ask whether something has changed, or try to take a lock: not a heartbeat, a producer, or a counter.
var pollOps = facts.WordSet("EXISTS GET GETEX HGET HGETALL HMGET HEXISTS MGET TTL PTTL TYPE LLEN LPOP RPOP LRANGE " +
	"SPOP SCARD SMEMBERS SISMEMBER ZCARD ZRANGE ZRANGEBYSCORE ZSCORE XLEN XREAD XREADGROUP XPENDING SET SETNX EVAL " +
	"EVALSHA FCALL EVAL_RO EVALSHA_RO FCALL_RO")

// PollsSaid says that threads poll; empty where they do not, or hardly.
func (t CallerTime) PollsSaid() string {
	idle := t.In("timer") + t.In("events") + t.In("lock") - t.PollsNs // of threads that have nothing to do, too
	least := max(degree.Most*float64(t.In("redis")), facts.MinShare*float64(t.Ns-idle))
	if t.Polls < degree.Many || float64(t.PollsNs) < least || !pollOps[t.PollOp] {
		return ""
	}
	return fmt.Sprintf("%s[%d] asked for the same again and again: %s pauses of %s on average between equal %s "+
		"requests, %s in all. If it polls, for a lock or a result that it keeps in Redis, that is what it waits for",
		t.Name, t.PID, format.Thousands(t.Polls), format.Brief(t.PollsNs/t.Polls), t.PollOp, format.Brief(t.PollsNs))
}

// elsewhere says what callers waited for where no call to the server explains that they are slow.
func elsewhere(c *facts.Case, all []CallerTime) string {
	for _, t := range all {
		said, longest := t.PollsSaid(), int64(0)
		if len(t.Outside) > 0 {
			longest = t.Outside[0].Ns
		}
		if said != "" && t.lockSaid(c) != "" {
			longest = max(longest, t.In("lock"))
		}
		if said != "" && t.PollsNs > longest {
			return " " + said + "."
		}
	}
	for _, t := range all {
		if said := t.stallsSaid(c); said != "" {
			return " " + said + "."
		}
	}
	for _, t := range KindsOfCallers(all) {
		if said := t.waitsSaid(); said != "" {
			return " " + said + "."
		}
	}
	for _, t := range all {
		if said := t.askedSaid(c); said != "" {
			return " " + said + "."
		}
	}
	for _, t := range all {
		if said := t.lockSaid(c); said != "" {
			return " " + said + "."
		}
	}
	return ""
}

// stallsSaid says that an event loop is elsewhere for long; empty where it is not.
func (t CallerTime) stallsSaid(c *facts.Case) string {
	watched := float64(c.EndNs - c.StartNs)
	if t.Stalls == 0 || float64(t.StallsNs) < degree.Part*watched || hosts.IsGo(c, t.PID) {
		return ""
	}
	said := fmt.Sprintf("The event loop of %s[%d] did nothing else for up to %s at a time, %s of the watch in all",
		format.Name(t.Name), t.PID, format.Brief(t.StallMaxNs), format.Percent(float64(t.StallsNs)/watched))
	if len(c.Nodes) > 0 {
		said += loopSaid(c.Nodes[0], t.PID)
	}
	return said + ". What its calls wait for before they are sent is not seen"
}

// loopSaid says where an event loop was in its program while it did not wait for events; empty where that is not known.
func loopSaid(n *facts.Node, pid int) string {
	loops := hosts.LoopTIDs(n, pid)
	code, known := hosts.CodeIn(n, pid, facts.Spans{{FromNs: n.StartNs, ToNs: n.EndNs}}, func(s hosts.CodeSample) bool {
		return slices.Contains(loops, int(s.TID)) && !s.Awaits
	})
	if !known || strings.Contains(code.Library, "[asyncio/") { // uvloop waits in a function of C
		return ""
	}
	return fmt.Sprintf("; it was in %s in %d of %d samples of its work", format.Name(code.Text()), code.In,
		code.Samples)
}

// lockSaid says that threads wait for each other, and where, or who has their interpreter's lock; empty where they do
// not, or that is not known.
func (t CallerTime) lockSaid(c *facts.Case) string {
	atWork := t.Ns - t.In("timer") - t.In("events")
	if len(c.Nodes) == 0 || t.In("lock") <= t.In("redis") || float64(t.In("lock")) < facts.MinShare*float64(atWork) {
		return ""
	}
	said := fmt.Sprintf("The threads of %s[%d] wait for each other for %s of their time, and for Redis for %s; ",
		format.Name(t.Name), t.PID, format.Percent(float64(t.In("lock"))/float64(t.Ns)),
		format.Percent(float64(t.In("redis"))/float64(t.Ns)))
	n := c.Nodes[0]
	share, code, known := hosts.LockHeld(n, t.PID)
	if known && share >= degree.Most {
		said += fmt.Sprintf("%s was held in %s of the samples", hosts.LockName(hosts.InterpreterLock(n.Case, t.PID)),
			format.Percent(share))
		if code.Function != "" {
			said += ", mostly in " + format.Name(code.Text())
		}
		return said
	}
	whole := facts.Spans{{FromNs: c.StartNs, ToNs: c.EndNs}}
	code, known = hosts.CodeIn(n, t.PID, whole, func(s hosts.CodeSample) bool { return s.Waits && !s.HoldsLock })
	if !known || float64(t.In("lock")) < degree.Most*float64(t.Ns) {
		return ""
	}
	said += fmt.Sprintf("in %d of %d samples they were in %s", code.In, code.Samples, format.Name(code.Text()))
	if code, known = hosts.HolderCode(n, t.PID); known {
		said += fmt.Sprintf(", and in %d of %d meanwhile the thread that woke them was in %s", code.In, code.Samples,
			format.Name(code.Text()))
	}
	return said
}

// askedSaid says that another service takes longer over the requests of an event loop, or of goroutines, than Redis
// does; empty where it does not.
func (t CallerTime) askedSaid(c *facts.Case) string {
	watched := float64(c.EndNs - c.StartNs)
	if len(t.Asked) == 0 || t.Asked[0].Waits <= 0 || float64(t.Asked[0].Ns) < facts.MinShare*watched {
		return ""
	}
	var redis int64
	for _, n := range c.Nodes {
		if caller := caller.CallerByPID(n, t.PID); caller != nil {
			redis += caller.InFlightNs()
		}
	}
	w := t.Asked[0]
	if w.Ns <= redis {
		return ""
	}
	return fmt.Sprintf("Requests of %s to %s take %s on average, and %s of them were under way at a time; of those "+
		"to Redis %s", format.Name(t.Name), w.Name(), format.Brief(w.Ns/w.Waits), format.Rounded(float64(w.Ns)/watched),
		format.Rounded(float64(redis)/watched))
}

// waitsSaid says that threads wait for another service, or in a system call, and not for Redis; empty where they do
// not.
func (t CallerTime) waitsSaid() string {
	redis := t.In("redis") + t.In("dial") + t.In("event-loop")
	if len(t.Outside) == 0 {
		return ""
	}
	w, atWork := t.Outside[0], t.Ns-t.In("timer")-t.In("events")
	if w.Ns <= redis || float64(w.Ns) < facts.MinShare*float64(atWork) {
		return ""
	}
	what := "in "
	if w.Call == "" {
		what = "for "
	}
	what += format.Name(w.Name())
	share := func(ns int64) string { return format.Percent(float64(ns) / float64(t.Ns)) }
	each := ""
	if w.Waits > 0 {
		each = fmt.Sprintf(" (%s on average)", format.Brief(w.Ns/w.Waits))
	}
	return fmt.Sprintf("The threads of %s wait %s, for %s of their time%s, and for Redis for %s",
		format.Name(t.Name), what, share(w.Ns), each, share(redis))
}
