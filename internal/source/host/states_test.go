package host

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"slowpath/internal/recording"
	"slowpath/internal/source/hostfs"
)

const ms = 1_000_000

// life is a thread whose states are known: what it does, and for how long.
type life []phase

type phase struct {
	what string // run, wait, throttled, sleep, blocked, frozen
	ns   int64
}

// kernel turns the life of a thread into readings as Linux shows it. Its fields are the ways in which kernels differ.
type kernel struct {
	hz             int64 // run_ns grows once per timer reading while a thread runs
	delayThrottled bool  // delay_ns holds throttled time
	cpus           int64 // throttled time is a sum over so many CPUs
}

var linux618 = kernel{hz: 250, delayThrottled: true, cpus: 1}

var testLevels = &throttleLevels{
	limits: []cpuLimit{{Path: "/limited", QuotaUs: 20000, PeriodUs: 100000}},
	files:  []hostfs.File{nil},
}

// readings reads a life at the given times.
func (k kernel) readings(l life, at []int64) []reading {
	states := map[string]byte{"run": 'R', "wait": 'R', "throttled": 'R', "sleep": 'S', "blocked": 'D', "frozen": 'T'}
	var list []reading
	for _, now := range at {
		t := reading{at: now, state: 'S', levels: testLevels}
		begin, waited := int64(0), int64(0)
		for i, p := range l {
			end := begin + p.ns
			done := min(end, now) - begin
			if p.what == "run" && (i == 0 || l[i-1].what != "run") {
				t.arrivals++
				t.delayNs, waited = t.delayNs+waited, 0
			}
			if end > now && p.what == "run" {
				counted := now - now%(1e9/k.hz)
				done = max(0, counted-begin)
			}
			switch {
			case p.what == "run":
				t.runNs += done
			case p.what == "wait" || (p.what == "throttled" && k.delayThrottled):
				waited += p.ns
			}
			if p.what == "throttled" && end <= now {
				t.throttledNs[0] += p.ns * k.cpus
			}
			if end > now {
				t.state = states[p.what]
				if p.what == "frozen" {
					t.frozenBy = "-"
				}
				if p.what == "blocked" {
					t.syscall = "fdatasync"
				}
				break
			}
			begin = end
		}
		list = append(list, t)
	}
	return list
}

func every(period, until int64) (at []int64) {
	for now := int64(1); now < until; now += period {
		at = append(at, now)
	}
	return at
}

// see gives the spans of a life, and the sum of each state.
func see(k kernel, l life, at []int64) ([]stateSpan, map[string]int64) {
	var list []stateSpan
	sums := map[string]int64{}
	s := newStates(1, 5*ms, func(x stateSpan) {
		list = append(list, x)
		sums[x.kind] += x.ns
	})
	for _, t := range k.readings(l, at) {
		s.add(t)
	}
	s.flush()
	return list, sums
}

func (l life) length() (ns int64) {
	for _, p := range l {
		ns += p.ns
	}
	return ns
}

func repeat(n int, phases ...phase) life {
	var l life
	for range n {
		l = append(l, phases...)
	}
	return l
}

func TestStatesOfKnownLives(t *testing.T) {
	old := kernel{hz: 250, delayThrottled: false, cpus: 1}
	twoCPUs := kernel{hz: 250, delayThrottled: true, cpus: 2}
	for _, c := range []struct {
		name   string
		kernel kernel
		life   life
		kind   string
		n      int // spans of that kind
		ns     int64
	}{
		{
			"throttled every period", linux618, repeat(10, phase{"run", 20 * ms}, phase{"throttled", 80 * ms}),
			recording.KindThrottled, 10, 800 * ms,
		},
		{
			"throttled, delay_ns without it", old, repeat(10, phase{"run", 20 * ms}, phase{"throttled", 80 * ms}),
			recording.KindThrottled, 10, 800 * ms,
		},
		{
			"throttled on two CPUs", twoCPUs, repeat(10, phase{"run", 20 * ms}, phase{"throttled", 80 * ms}),
			recording.KindThrottled, 10, 800 * ms,
		},
		{
			"busy between throttled periods", linux618, repeat(10, phase{"run", 20 * ms}, phase{"throttled", 80 * ms}),
			recording.KindBusy, 10, 200 * ms,
		},
		{
			"others throttled while it sleeps", linux618, repeat(10, phase{"run", 1 * ms}, phase{"sleep", 99 * ms}),
			recording.KindThrottled, 0, 0,
		},
		{
			"one wait", linux618,
			life{{"run", 30 * ms}, {"wait", 40 * ms}, {"run", 30 * ms}, {"sleep", 50 * ms}},
			recording.KindRunQueue, 1, 40 * ms,
		},
		{"shares a CPU", linux618, append(repeat(50, phase{"run", 4 * ms}, phase{"wait", 4 * ms}),
			phase{"sleep", 50 * ms}), recording.KindRunQueue, 4, 196 * ms},
		{
			"frozen", linux618,
			life{{"sleep", 100 * ms}, {"frozen", 500 * ms}, {"sleep", 100 * ms}},
			recording.KindFrozen,
			1, 500 * ms,
		},
		{"blocked", linux618, append(repeat(20, phase{"run", 1 * ms}, phase{"blocked", 9 * ms}),
			phase{"sleep", 100 * ms}), recording.KindBlocked, 1, 180 * ms},
		{
			"busy", linux618,
			life{{"sleep", 100 * ms}, {"run", 300 * ms}, {"sleep", 100 * ms}},
			recording.KindBusy, 1,
			300 * ms,
		},
		{"busy with short preemptions", linux618, append(repeat(30, phase{"run", 20 * ms}, phase{"wait", ms / 10}),
			phase{"sleep", 100 * ms}), recording.KindBusy, 1, 600 * ms},
		{
			"60 % load is not busy", linux618, repeat(500, phase{"run", 600_000}, phase{"sleep", 400_000}),
			recording.KindBusy, 0, 0,
		},
		{"idle", linux618, repeat(10, phase{"sleep", 99 * ms}, phase{"run", 1 * ms}), recording.KindBusy, 0, 0},
		{"still throttled at the end", linux618, life{
			{"run", 20 * ms},
			{"throttled", 80 * ms},
			{"run", 20 * ms},
			{"throttled", 80 * ms},
		}, recording.KindThrottled, 2, 155 * ms},
		{"longer at the end than a quota makes it wait", linux618, life{
			{"run", 20 * ms},
			{"throttled", 80 * ms},
			{"run", 20 * ms},
			{"wait", 500 * ms},
		}, recording.KindThrottled, 1, 80 * ms},
		{
			"still waiting at the end", linux618,
			life{{"run", 20 * ms}, {"wait", 200 * ms}},
			recording.KindRunQueue, 1,
			200 * ms,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			list, _ := see(c.kernel, c.life, every(5*ms, c.life.length()))
			n, ns := 0, int64(0)
			for _, x := range list {
				if x.kind == c.kind {
					n, ns = n+1, ns+x.ns
				}
			}
			if n != c.n || ns < c.ns-c.ns/10-4*ms || ns > c.ns+c.ns/10+4*ms {
				t.Errorf("%d spans, %d ms; want %d, %d ms\n%s", n, ns/ms, c.n, c.ns/ms, text(list))
			}
		})
	}
}

func text(list []stateSpan) (s string) {
	for _, x := range list {
		s += fmt.Sprintf("%-10s %7.1f … %7.1f ms, share %.2f %+v\n", x.kind, float64(x.from)/ms, float64(x.to)/ms,
			x.share(), x.detail)
	}
	return s
}

// TestOthersThrottled: the quota is used up by another thread; the main thread sleeps and is not runnable.
func TestOthersThrottled(t *testing.T) {
	var got []stateSpan
	s := newStates(1, 5*ms, func(x stateSpan) { got = append(got, x) })
	for i, x := range linux618.readings(repeat(10, phase{"run", 1 * ms}, phase{"sleep", 99 * ms}),
		every(5*ms, 1000*ms)) {
		x.throttledNs[0] = int64(i/20) * 80 * ms
		s.add(x)
	}
	s.flush()
	for _, x := range got {
		t.Errorf("a sleeping thread was %s for %d ms", x.kind, x.ns/ms)
	}
}

// TestStatesAreHonest: whatever a thread does and however late the watcher is, each state's spans lie within the
// watch, in order, do not overlap, say no more than was, and miss no long throttled or frozen time.
func TestStatesAreHonest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := kernel{hz: rapid.SampledFrom([]int64{100, 250, 1000}).Draw(t, "hz"), delayThrottled: rapid.Bool().Draw(t,
			"delay"), cpus: 1}
		var l life
		truth, long := map[string]int64{}, map[string]int64{}
		for range rapid.IntRange(1, 30).Draw(t, "phases") {
			what := rapid.SampledFrom([]string{"wait", "throttled", "sleep", "blocked", "frozen"}).Draw(t, "what")
			run, ns := rapid.Int64Range(1000, 40*ms).Draw(t, "run"), rapid.Int64Range(1000, 120*ms).Draw(t, "ns")
			l = append(l, phase{"run", run}, phase{what, ns})
			truth[what] += ns
			if ns > 40*ms {
				long[what] += ns
			}
		}
		l = append(l, phase{"run", ms}, phase{"sleep", 30 * ms})
		at := []int64{1}
		for at[len(at)-1] < l.length() {
			late := int64(0)
			if rapid.IntRange(0, 20).Draw(t, "late") == 0 {
				late = rapid.Int64Range(0, 30*ms).Draw(t, "by")
			}
			at = append(at, at[len(at)-1]+5*ms+late)
		}
		list, sums := see(k, l, at)
		last := map[string]int64{}
		for _, x := range list {
			if x.from < 0 || x.to > at[len(at)-1] || x.from >= x.to || x.ns > x.to-x.from+1000 {
				t.Fatalf("impossible: %s", text([]stateSpan{x}))
			}
			if x.from < last[x.kind]-6*ms {
				t.Fatalf("%s goes back before %d ms:\n%s", x.kind, last[x.kind]/ms, text(list))
			}
			last[x.kind] = x.to
		}
		for kind, what := range map[string]string{
			recording.KindThrottled: "throttled",
			recording.KindRunQueue:  "wait",
		} {
			if sums[kind] > truth[what]+truth[what]/5+40*ms {
				t.Fatalf("%s for %d ms, was %d ms:\n%v\n%s", kind, sums[kind]/ms, truth[what]/ms, l, text(list))
			}
		}
		for kind, what := range map[string]string{
			recording.KindThrottled: "throttled", recording.KindRunQueue: "wait",
			recording.KindFrozen: "frozen",
		} {
			if sums[kind] < long[what]*6/10 {
				t.Fatalf("%s for %d ms, was %d ms:\n%v\n%s", kind, sums[kind]/ms, truth[what]/ms, l, text(list))
			}
		}
	})
}
