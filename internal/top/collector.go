package top

import (
	"encoding/json"
	"slices"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/live"
	"slowpath/internal/recording"
)

// ownSource is the source of slowpath's own calls.
const ownSource = recording.SourceProbe

// Bounds of a frame.
const (
	newestSlow = 600 // slow calls that are looked at
	frameRows  = 200 // rows of its lists
	minute     = 60  // seconds
	// commandsEvery is how often, in seconds, the commands of a minute are added up: most of the work of a frame.
	commandsEvery = 3
	// heatSeconds are those of the map: as long as a view keeps
	heatSeconds = int(live.DefaultKeep / time.Second)
)

// Collector makes frames of a view.
type Collector struct {
	View  *live.View
	Clock clock.Clock
	Cost  *Meter // nil: the frames have no cost

	began   int64 // nanoseconds since the epoch; 0 before the first frame
	callers callerRates
	counted int64         // the end of the seconds that were asked for
	minute  []live.Second // of the last minute
	heat    map[live.Whose][]HeatSecond

	listed   int64 // the second in which commands were added up
	commands []Command
}

// Frame is the state of the watch after the last whole second.
func (c *Collector) Frame() Frame {
	now := c.Clock.Now()
	if c.began == 0 {
		c.began = now
	}
	end := c.View.Complete()
	f := Frame{
		Time: time.Unix(end, 0).UTC(), Watched: time.Duration(now - c.began), Target: c.View.Meta(recording.MetaTarget),
		Server: c.View.Meta(recording.MetaServer), Nodes: max(1, nodesOf(c.View)),
		SlowNs: int64(c.View.Threshold()), UsersUnseen: usersUnseen(c.View),
	}
	if end <= c.began/1e9+1 { // no second is whole yet
		f.Time = time.Time{}
	}
	c.numbers(&f, end)
	slow := usersFirst(c.View.Slow(newestSlow))
	f.Calls = stallsOf(slow)
	f.Callers = c.callers.of(c.View.Callers(), now)
	if end-c.listed >= commandsEvery {
		c.listed = end
		c.commands = commandsIn(c.View.Ops(end-minute, end), min(minute, int(f.Watched/time.Second)))
	}
	f.Commands = c.commands
	f.Waits = waitsOfCalls(slow, (end-minute)*1e9)
	if c.Cost != nil {
		f.Cost = c.Cost.Cost(c.View, now)
	}
	return f
}

func nodesOf(v *live.View) int {
	var nodes []string
	_ = json.Unmarshal([]byte(v.Meta(recording.MetaNodes)), &nodes) // none is one
	return len(nodes)
}

// usersUnseen says why the kernel shows no calls of users; empty where it does.
func usersUnseen(v *live.View) string {
	var s recording.SourceStatus
	text := v.Meta(recording.MetaSource + recording.SourceTap)
	if json.Unmarshal([]byte(text), &s) != nil || s.Used {
		return ""
	}
	if s.Why == "" {
		return "the kernel is not watched"
	}
	return s.Why
}

// sum adds up seconds.
type sum struct {
	Numbers
	latencies live.Latencies
}

func (s *sum) add(one live.Second) {
	s.Calls, s.Slow, s.Failed = s.Calls+one.Calls, s.Slow+one.Slow, s.Failed+one.Failed
	s.latencies.Merge(one.Latencies)
}

func (s *sum) done(seconds int) Numbers {
	s.Seconds = seconds
	s.P50Ns, s.P99Ns, s.MaxNs = quantiles(s.latencies)
	return s.Numbers
}

func quantiles(l live.Latencies) (p50, p99, worst int64) {
	return l.Quantile(0.5), l.Quantile(0.99), l.MaxNs()
}

// numbers fills what is counted in seconds before end. Only the seconds since the last frame are asked for: of each, a
// view adds up all commands.
func (c *Collector) numbers(f *Frame, end int64) {
	if c.heat == nil {
		c.heat = map[live.Whose][]HeatSecond{}
	}
	for _, s := range c.View.Seconds(c.counted, end) {
		c.heat[s.Whose] = addHeat(c.heat[s.Whose], s)
		c.minute = append(c.minute, s)
	}
	c.counted = end
	c.minute = slices.DeleteFunc(c.minute, func(s live.Second) bool { return s.Unix < end-minute })
	var users, usersMinute, own, ownMinute sum
	for _, s := range c.minute {
		second, inMinute := &own, &ownMinute
		if s.Whose == live.Users {
			second, inMinute = &users, &usersMinute
		}
		if s.Unix == end-1 {
			second.add(s)
		}
		inMinute.add(s)
	}
	seconds := max(1, min(minute, int(f.Watched/time.Second)))
	f.Users, f.UsersMinute = users.done(1), usersMinute.done(seconds)
	f.Own, f.OwnMinute = own.done(1), ownMinute.done(seconds)
	f.Seconds = slices.Clone(c.heat[live.Users])
	if f.UsersUnseen != "" {
		f.Seconds, f.HeatOwn = slices.Clone(c.heat[live.Own]), true
	}
	if n := len(f.Seconds); n > 0 && f.Seconds[n-1].Unix < end-1 { // up to now, also where nobody calls
		f.Seconds = append(f.Seconds, HeatSecond{Unix: end - 1})
	}
}

// addHeat adds a second, which is not before the last one.
func addHeat(all []HeatSecond, s live.Second) []HeatSecond {
	if n := len(all); n == 0 || all[n-1].Unix != s.Unix {
		all = append(all, HeatSecond{Unix: s.Unix})
	}
	if old := len(all) - heatSeconds; old > 0 {
		all = slices.Delete(all, 0, old)
	}
	h := &all[len(all)-1]
	s.Latencies.Each(func(fromNs, toNs, calls int64) { h.Counts[heatLevel((fromNs+toNs)/2)] += calls })
	return all
}

func commandsIn(ops []live.Op, seconds int) (out []Command) {
	for _, o := range ops[:min(len(ops), frameRows)] {
		c := Command{Node: o.Node, Op: o.Op, Numbers: Numbers{Seconds: max(1, seconds), Calls: o.Latencies.Calls()}}
		c.P50Ns, c.P99Ns, c.MaxNs = quantiles(o.Latencies)
		out = append(out, c)
	}
	return out
}

// callerRates knows how many calls each caller had made at the frames of the last seconds.
type callerRates struct {
	times  []int64 // nanoseconds since the epoch
	counts [][]live.Caller
}

// ratesOver is how many frames, which are seconds apart, a rate is of.
const ratesOver = 10

func (r *callerRates) of(callers []live.Caller, now int64) (out []Caller) {
	r.times, r.counts = append(r.times, now), append(r.counts, callers)
	if len(r.times) > ratesOver+1 {
		r.times, r.counts = r.times[1:], r.counts[1:]
	}
	seconds, made := float64(now-r.times[0])/1e9, live.NewCalls(r.counts[0], callers)
	for _, c := range callers[:min(len(callers), frameRows)] {
		one := Caller{Name: c.Name, Slow: int64(c.Slow), LostNs: c.LostNs}
		if seconds > 0 {
			one.PerSecond = float64(made[c.Key]) / seconds
		}
		out = append(out, one)
	}
	return out
}

// timeOf is a time of a recording.
func timeOf(ns int64) time.Time { return time.Unix(0, ns).UTC() }
