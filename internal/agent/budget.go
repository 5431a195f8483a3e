package agent

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/format"
	"slowpath/internal/recording/series"
	"slowpath/internal/source"
	"slowpath/internal/source/tap"
)

// Cost is what the agent takes of this host.
type Cost struct {
	CPU   float64 // of a core, by the agent's processes, over the last minute
	Hooks float64 // of a core, by the kernel programs; 0 where it is not known
	RSS   int64   // bytes of the agent's processes, now
	// Judging is the CPU time of all judgements so far. They are processes of their own that end, are bounded each for
	// itself, and are no part of CPU and RSS.
	Judging   time.Duration
	CPUBudget float64 // 0: none
	RSSBudget int64
	Reduced   string // what is done less of to keep the budget, and what comes later or is not seen for it
	Over      string // says how the budget is not kept; empty: it is, or the watch has just begun
	Sampled   bool   // connections are left out to keep it
}

// What the agent does less of where it takes more than its budget, in this order. First it asks servers and their hosts
// more rarely, from the begin where there are many; it makes calls of its own more rarely, too. While calls are slow it
// does so less. Then the tap follows a part of the connections. If that does not suffice, health says so.
const (
	mostPace       = 16 // times as rarely as one server is asked
	serversPerPace = 4  // that are asked as often as one
	incidentPace   = 8  // in an incident it is so many times as often
	samplesSay     = "the tap follows a part of the connections, at a third of its budget: of the others slow calls " +
		"are not seen"
)

func usedBudget(b float64) float64 {
	if b == 0 {
		return tap.DefaultBudget
	}
	return b
}

// Times of the budget.
const (
	measureEvery = 10 * time.Second
	// The pace changes when the budget is not kept for halfMinute. Connections are left out when several minutes take
	// worthRestart times the budget, or one farTooMuch: for that the watch begins again, which costs half a second of
	// CPU time, and it sees nothing meanwhile.
	halfMinute   = 3  // measurements
	overMinute   = 6  // measurements
	overMinutes  = 30 // measurements
	farTooMuch   = 2
	worthRestart = 1.25
	// settleTime is not counted after the begin of a watch: the kernel programs are loaded and everything is read once.
	settleTime = 90 * time.Second
	backAfter  = 30 * time.Minute
	backBelow  = 0.5 // of the budget
	paceBelow  = 0.4 // of the budget: twice as much is well within it
	// inIncident is how many times its budget the agent may take while calls are slow: to record each of them costs
	// more, and is what it is there for.
	inIncident = 5
	// goHeapPart of the memory is for Go's heap: the rest is the program itself, and what the kernel's programs report
	// through, which counts twice. It is more where leastRoom of what is in use would not be left between collections:
	// with less, Go does nothing but collect.
	goHeapPart = 0.4
	leastRoom  = 0.3
	// gcPercent is by how much the heap grows between two collections, in percent of what is in use.
	gcPercent = 200
	// timerSlack is how late the kernel may end a sleep. Sources that must be on time use clock.Alarm, which it does
	// not concern.
	timerSlack = time.Millisecond
	// nearLimit is the part of the memory from which on pages are given back: each minute, since that takes as long as
	// a collection of garbage, or at once from atLimit on.
	nearLimit    = 0.85
	atLimit      = 0.93
	releaseEvery = time.Minute
)

// budget measures what the agent costs, and gives up what costs most for least when it is too much.
type budget struct {
	a *Agent

	other atomic.Int64 // pid of the agent's other process, its door; 0: there is none

	mu       sync.Mutex
	cost     Cost
	cpu      []time.Duration // of the agent's processes, at the measurements of the last minute
	usual    []time.Duration // the same of some minutes in which nothing changed: the begin, the pace, an incident
	times    int64           // as rarely as one server is asked, outside of incidents
	pace     clock.Pace      // the same now
	sampled  bool            // connections are left out
	began    time.Time       // the watch
	released time.Time       // pages that only the begin of the watch needed, or that others need; zero: not since then
	incident time.Time       // when calls were slow last
	inOne    bool            // at the last measurement, or in the minute before
	below    time.Time       // since when it is far below the budget; zero: it is not
	backWait time.Duration   // how long it must be
}

func newBudget(a *Agent) *budget { return &budget{a: a, times: 1, backWait: backAfter} }

// keep measures until ctx ends.
func (b *budget) keep(ctx context.Context) {
	b.limitRuntime()
	tick := time.NewTicker(measureEvery)
	defer tick.Stop()
	for {
		if b.a.episodes.going() {
			b.mu.Lock()
			b.incident = time.Now()
			b.mu.Unlock()
		}
		now := time.Now()
		cpu, rss := b.used()
		if b.release(now, rss) {
			_, rss = b.used()
		}
		b.measure(now, cpu, rss)
		b.limitHeap(b.a.settings.Load().Memory)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// limitRuntime has Go collect garbage rarely, but when the heap comes near its part of the memory, and run one thread
// at a time: each timer would wake up another one that finds nothing to do. The thread by which Go watches over the
// others sleeps for 20 µs again and again while one of them runs: with late timers it does so less often.
func (b *budget) limitRuntime() {
	s := b.a.settings.Load()
	b.limitHeap(s.Memory)
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMAXPROCS") == "" && s.CPUBudget > 0 {
		runtime.GOMAXPROCS(1)
		slackenTimers(timerSlack)
	}
}

// limitHeap has Go collect garbage before it takes more than its part of the memory, but leaves it room to work in.
func (b *budget) limitHeap(memory int64) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	now := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(now)
	live, other := now[0].Value.Uint64(), now[1].Value.Uint64()
	for _, heap := range now[2:] {
		other -= min(heap.Value.Uint64(), other)
	}
	debug.SetMemoryLimit(max(int64(goHeapPart*float64(memory)), int64((1+leastRoom)*float64(live))+int64(other)))
}

// watchBegins has the cost of the begin of a watch of so many servers left out.
func (b *budget) watchBegins(servers int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.began, b.cpu, b.usual = time.Now(), nil, nil
	for b.times < mostPace && int(b.times)*serversPerPace < servers {
		b.times *= 2
	}
	b.setPace()
	debug.FreeOSMemory() // what the begin of a watch took: the kernel's types, the programs
	b.released = time.Time{}
}

// setPace has the pace followed. b.mu is held.
func (b *budget) setPace() {
	b.usual = nil
	b.pace.Set(b.times)
	if b.inOne {
		b.pace.Set(b.times / incidentPace)
	}
}

// begun reports whether the watch has begun, and what only its begin takes is over. b.mu is held.
func (b *budget) begun(now time.Time) bool {
	return !b.began.IsZero() && now.Sub(b.began) > settleTime/3
}

// release gives memory back that is not needed any more, where it is time for it.
func (b *budget) release(now time.Time, rss int64) bool {
	memory := float64(b.a.settings.Load().Memory)
	b.mu.Lock()
	defer b.mu.Unlock()
	near, at := float64(rss) > nearLimit*memory, float64(rss) > atLimit*memory
	if !(b.begun(now) && b.released.IsZero() || near && now.Sub(b.released) >= releaseEvery || at) {
		return false
	}
	b.released = now
	debug.FreeOSMemory()
	ReleaseProgram()
	return true
}

// measure takes the CPU time and the memory of the agent, and decides whether to do less, or more again.
func (b *budget) measure(now time.Time, cpu time.Duration, rss int64) {
	s := b.a.settings.Load()
	b.mu.Lock()
	defer b.mu.Unlock()
	settling := b.began.IsZero() || now.Sub(b.began) < settleTime
	// The last minute has a part of it.
	if inOne := now.Sub(b.incident) <= (overMinute+1)*measureEvery; inOne != b.inOne {
		b.inOne = inOne
		b.setPace()
	}
	begun := b.begun(now)
	if !begun {
		b.usual = nil
	}
	b.cpu, b.usual = last(append(b.cpu, cpu), overMinute+1), last(append(b.usual, cpu), overMinutes+1)
	b.cost = Cost{
		CPU: coreOf(b.cpu), Hooks: b.hooks(), RSS: rss, CPUBudget: s.CPUBudget, RSSBudget: s.Memory,
		Judging: judging(), Reduced: b.reduced(), Sampled: b.sampled,
	}
	b.cost.Over = b.cost.over(!b.began.IsZero() && len(b.cpu) > halfMinute)
	if begun && s.CPUBudget > 0 && len(b.usual) > halfMinute {
		b.decide(now, s.CPUBudget, settling)
	}
}

// over says how a budget is not kept. The CPU time is not looked at where it was measured for too short.
func (c Cost) over(measured bool) string {
	var out []string
	if measured && c.CPUBudget > 0 && c.CPU > c.CPUBudget {
		out = append(out, fmt.Sprintf("slowpath takes %s of a core, and may take %s (--cpu-budget)",
			format.Percent(c.CPU), format.Percent(c.CPUBudget)))
	}
	if c.RSSBudget > 0 && c.RSS > c.RSSBudget {
		out = append(out, fmt.Sprintf("slowpath takes %s of memory, and may take %s (--memory)", format.Bytes(c.RSS),
			format.Bytes(c.RSSBudget)))
	}
	return strings.Join(out, "; ")
}

// last are the last n.
func last(all []time.Duration, n int) []time.Duration { return all[max(len(all)-n, 0):] }

// coreOf is the part of a core that was used between the first and the last measurement.
func coreOf(cpu []time.Duration) float64 {
	n := len(cpu) - 1
	if n < 1 {
		return 0
	}
	return float64(cpu[n]-cpu[0]) / float64(time.Duration(n)*measureEvery)
}

// decide has less done, or more again, by what the last minutes took. b.mu is held.
func (b *budget) decide(now time.Time, limit float64, settling bool) {
	allowed := limit
	if b.inOne {
		allowed *= inIncident
	}
	core, minutes := coreOf(b.usual), len(b.usual) > overMinutes
	lately := coreOf(last(b.usual, halfMinute+1))
	if core > backBelow*allowed || b.inOne {
		b.below = time.Time{}
	} else if b.below.IsZero() {
		b.below = now
	}
	switch {
	case lately > allowed && b.times < mostPace:
		for before := b.times; b.times < mostPace && lately*float64(before) > allowed*float64(b.times); {
			b.times *= 2
		}
		b.a.log.Warn("slowpath takes %s of a core, and may take %s: %s", format.Percent(lately), format.Percent(limit),
			b.paceSays())
	case !b.sampled && !settling && (minutes && core > worthRestart*allowed ||
		len(b.usual) > overMinute && core > farTooMuch*allowed):
		b.sampled = true
		b.a.log.Warn("slowpath takes %s of a core, and may take %s: %s", format.Percent(core), format.Percent(limit),
			samplesSay)
		b.a.restartWatch()
	case b.sampled && !b.below.IsZero() && now.Sub(b.below) >= b.backWait:
		b.sampled, b.backWait = false, min(2*b.backWait, 24*time.Hour) // it may be too much again
		b.a.log.Say("slowpath takes %s of a core: no longer so: %s", format.Percent(core), samplesSay)
		b.a.restartWatch()
	case !b.sampled && b.times > 1 && minutes && core < paceBelow*allowed && !b.inOne:
		b.times /= 2
	default:
		return
	}
	b.setPace()
	b.below, b.cost.Reduced, b.cost.Sampled = time.Time{}, b.reduced(), b.sampled
}

// reduce gives up what has to be.
func (b *budget) reduce(o *source.Options) {
	b.mu.Lock()
	defer b.mu.Unlock()
	o.Pace = &b.pace
	if b.sampled {
		o.TapBudget = usedBudget(o.TapBudget) / 3
	}
}

// reduced says what is given up. b.mu is held.
func (b *budget) reduced() string {
	var out []string
	if b.times > 1 {
		out = append(out, b.paceSays())
	}
	if b.sampled {
		out = append(out, samplesSay)
	}
	return strings.Join(out, "; ")
}

func (b *budget) paceSays() string {
	return fmt.Sprintf("while no calls are slow, servers and their hosts are asked %d times as rarely, and as many "+
		"times fewer calls are made of our own: what they say comes later", b.times)
}

// hooks is what the kernel programs took when that was measured, at the begin of the watch.
func (b *budget) hooks() float64 {
	ns, _, ok := b.a.view.LastSample(series.TapHookTime, "")
	of, _, measured := b.a.view.LastSample(series.TapHookMeasured, "")
	if !ok || !measured || of <= 0 {
		return 0
	}
	return ns / of
}

// Cost is what was measured last.
func (b *budget) Cost() Cost {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cost
}

// used is the CPU time, user and system, and the resident memory in bytes of the agent: of this process and its door.
func (b *budget) used() (cpu time.Duration, rss int64) {
	cpu, rss = usedBy("self")
	if pid := b.other.Load(); pid != 0 {
		more, resident := usedBy(strconv.FormatInt(pid, 10))
		cpu, rss = cpu+more, rss+resident
	}
	return cpu, rss
}

// usedBy is what a process of /proc used; 0 where it is not known.
func usedBy(process string) (cpu time.Duration, rss int64) {
	const tick = 10 * time.Millisecond // USER_HZ is 100
	b, err := os.ReadFile("/proc/" + process + "/stat")
	if err != nil {
		return 0, 0
	}
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:])) // from the third one, state, on (proc(5))
	if len(fields) < 22 {
		return 0, 0
	}
	number := func(field int) int64 {
		n, _ := strconv.ParseInt(fields[field-3], 10, 64)
		return n
	}
	return time.Duration(number(14)+number(15)) * tick, number(24) * int64(os.Getpagesize())
}

// judging is the CPU time of the judgements that have ended: of all children of this process that have.
func judging() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
