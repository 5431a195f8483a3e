package agent

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
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
	CPU       float64 // of a core, by this process, over the last minute
	Hooks     float64 // of a core, by the kernel programs; 0 where it is not known
	RSS       int64   // bytes, now
	CPUBudget float64 // 0: none
	RSSBudget int64
	Reduced   string // what is done less of to keep the budget, and what is not seen for it
}

// Over reports whether the budget is not kept, or only by seeing less.
func (c Cost) Over() bool {
	return c.Reduced != "" || c.CPUBudget > 0 && c.CPU > c.CPUBudget || c.RSSBudget > 0 && c.RSS > c.RSSBudget
}

// step is what is given up when the agent takes more than its budget, the cheapest loss first.
type step struct {
	say    string
	reduce func(*source.Options) // nil: the host is read at a slower pace, for which the watch goes on
}

var steps = []step{
	{say: "the counters, sockets and processes of the host are read half as often: what they say comes later"},
	{
		"the tap follows a part of the connections, at a third of its budget: of the others slow calls are not seen; " +
			"slowpath's own calls are made five times more rarely",
		func(o *source.Options) {
			o.TapBudget, o.ProbeRate = usedBudget(o.TapBudget)/3, max(o.ProbeRate/5, leastProbeRate)
		},
	},
	{
		"the files of the host are not read: CPU quotas, run queues, disks and freezes are seen by the tap alone",
		func(o *source.Options) { o.NoHost = true },
	},
}

const leastProbeRate = 0.1 // calls per second

func usedBudget(b float64) float64 {
	if b == 0 {
		return tap.DefaultBudget
	}
	return b
}

// Times of the budget.
const (
	measureEvery = 10 * time.Second
	// A step is taken when the budget is not kept for several minutes, or at once when a minute takes farTooMuch times
	// the budget. One for which the watch begins again costs half a second of CPU time, and it sees nothing meanwhile:
	// that is done where several minutes take worthRestart times the budget.
	overMinute   = 6  // measurements
	overMinutes  = 30 // measurements
	farTooMuch   = 2
	worthRestart = 1.25
	slowerPace   = 2
	// settleTime is not counted after the begin of a watch: the kernel programs are loaded and everything is read once.
	settleTime = 90 * time.Second
	stepEvery  = 5 * time.Minute
	backAfter  = 30 * time.Minute
	backBelow  = 0.5 // of the budget
	// inIncident is how many times its budget the agent may take while calls are slow: to record each of them costs
	// more, and is what it is there for.
	inIncident = 5
	// goHeapPart of the memory is for Go's heap: the rest is the program itself, and what the kernel's programs report
	// through, which counts twice.
	goHeapPart = 0.4
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

	mu       sync.Mutex
	cost     Cost
	cpu      []time.Duration // of this process, at the measurements of the last minute
	usual    []time.Duration // the same for some minutes, without incidents and the begin of a watch
	level    int             // steps that are taken
	pace     clock.Pace      // at which the host is read
	began    time.Time       // the watch
	released time.Time       // pages that only the begin of the watch needed, or that others need; zero: not since then
	incident time.Time       // when calls were slow last
	changed  time.Time       // the level
	below    time.Time       // since when it is far below the budget; zero: it is not
	backWait time.Duration   // how long it must be
}

func newBudget(a *Agent) *budget { return &budget{a: a, backWait: backAfter} }

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
		b.measure(time.Now(), ownCPU(), ownRSS())
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
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(int64(goHeapPart * float64(s.Memory)))
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMAXPROCS") == "" && s.CPUBudget > 0 {
		runtime.GOMAXPROCS(1)
		slackenTimers(timerSlack)
	}
}

// watchBegins has the cost of the begin left out.
func (b *budget) watchBegins() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.began, b.cpu, b.usual = time.Now(), nil, nil
	debug.FreeOSMemory() // what the begin of a watch took: the kernel's types, the programs
	b.released = time.Time{}
}

// measure takes the CPU time and the memory of this process, and decides whether to give up more, or less.
func (b *budget) measure(now time.Time, cpu time.Duration, rss int64) {
	s := b.a.settings.Load()
	b.mu.Lock()
	defer b.mu.Unlock()
	settling := b.began.IsZero() || now.Sub(b.began) < settleTime
	incident := now.Sub(b.incident) <= (overMinute+1)*measureEvery // the last minute has a part of it
	if settling || incident {
		b.usual = nil
	}
	b.cpu, b.usual = last(append(b.cpu, cpu), overMinute+1), last(append(b.usual, cpu), overMinutes+1)
	b.cost = Cost{
		CPU: coreOf(b.cpu), Hooks: b.hooks(), RSS: rss, CPUBudget: s.CPUBudget, RSSBudget: s.Memory,
		Reduced: b.reduced(),
	}
	begun := !b.began.IsZero() && now.Sub(b.began) >= settleTime/3
	near, at := float64(rss) > nearLimit*float64(s.Memory), float64(rss) > atLimit*float64(s.Memory)
	if begun && b.released.IsZero() || near && now.Sub(b.released) >= releaseEvery || at {
		b.released = now
		debug.FreeOSMemory()
		ReleaseProgram()
	}
	if len(b.cpu) <= overMinute || settling || s.CPUBudget == 0 {
		return
	}
	limit := s.CPUBudget
	if incident {
		limit *= inIncident
	}
	switch {
	case incident && b.cost.CPU > limit, b.cost.CPU > farTooMuch*limit:
		b.decide(now, b.cost.CPU, limit)
	case len(b.usual) > overMinutes:
		b.decide(now, coreOf(b.usual), limit)
	}
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

// decide takes a step, or goes one back, where this process takes so much of a core. b.mu is held.
func (b *budget) decide(now time.Time, core, limit float64) {
	if core > backBelow*limit {
		b.below = time.Time{}
	} else if b.below.IsZero() {
		b.below = now
	}
	at := b.level
	if at < len(steps) && steps[at].reduce != nil {
		limit *= worthRestart
	}
	switch {
	case core > limit && at < len(steps) && now.Sub(b.changed) >= stepEvery:
		b.level++
		if b.level > 1 && now.Sub(b.changed) < 2*stepEvery {
			b.backWait = min(2*b.backWait, 24*time.Hour)
		}
		b.a.log.Warn("slowpath takes %s of a core, more than its budget of %s: %s", format.Percent(core),
			format.Percent(b.a.settings.Load().CPUBudget), steps[at].say)
	case b.level > 0 && !b.below.IsZero() && now.Sub(b.below) >= b.backWait:
		b.level--
		b.a.log.Say("slowpath takes %s of a core: no longer so: %s", format.Percent(core), steps[b.level].say)
		b.backWait = min(2*b.backWait, 24*time.Hour) // it may have been too much then, too
	default:
		return
	}
	b.changed, b.below, b.cpu, b.usual = now, time.Time{}, nil, nil
	b.cost.Reduced = b.reduced()
	b.pace.Set(1)
	if b.level > 0 {
		b.pace.Set(slowerPace)
	}
	if steps[min(at, b.level)].reduce != nil {
		b.a.restartWatch()
	}
}

// reduce gives up what has to be.
func (b *budget) reduce(o *source.Options) {
	b.mu.Lock()
	defer b.mu.Unlock()
	o.Pace = &b.pace
	for _, s := range steps[:b.level] {
		if s.reduce != nil {
			s.reduce(o)
		}
	}
}

// reduced says what is given up. b.mu is held.
func (b *budget) reduced() string {
	var out []string
	for _, s := range steps[:b.level] {
		out = append(out, s.say)
	}
	return strings.Join(out, "; ")
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

// ownCPU is the CPU time of this process, user and system. Judgements are processes of their own.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// ownRSS is the resident memory of this process in bytes; 0 where it is not known.
func ownRSS() int64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(b))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
