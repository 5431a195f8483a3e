package server

import (
	"slices"
	"strings"
	"time"
)

// ownCost measures what the watch's own commands take of the server's time. INFO's commandstats have calls and time per
// command; where others send the same command, the average counts. Where they are missing, the time that the polls took
// is the bound.
type ownCost struct {
	sent  map[string]int // own calls since the last INFO that was seen, by name in commandstats: "info", "slowlog|get"
	prev  *info
	bound time.Duration // wall time of these calls
	total time.Duration
	mean  map[string]time.Duration   // per call, as last measured
	last  map[string][]time.Duration // the last measurements of mean, at most measurements
}

// measurements is how many tell what a command costs. Commandstats have wall time: in one of them the server may have
// waited for a CPU.
const measurements = 4

type stat struct{ calls, usec float64 }

func newOwnCost() *ownCost {
	return &ownCost{
		sent: map[string]int{}, mean: map[string]time.Duration{}, last: map[string][]time.Duration{},
	}
}

// statName is a command's name in commandstats from 7.0.
func statName(args []string) string {
	name := strings.ToLower(args[0])
	if containers[strings.ToUpper(args[0])] && len(args) > 1 {
		name += "|" + strings.ToLower(args[1])
	}
	return name
}

// used adds commands that were sent, and how long they took together.
func (o *ownCost) used(cmds [][]string, took time.Duration) {
	for _, args := range cmds {
		o.sent[statName(args)]++
	}
	o.bound += took
}

// measure computes the cost of all commands before an INFO, and returns it. That INFO does not count itself.
func (o *ownCost) measure(in info) time.Duration {
	var charged time.Duration
	for name, own := range o.sent {
		if mean, ok := o.meanOf(in, name); ok {
			o.mean[name] = mean
			o.last[name] = append(o.last[name], mean)
			o.last[name] = o.last[name][max(len(o.last[name])-measurements, 0):]
		}
		mean, known := o.mean[name]
		if !known {
			mean = o.bound / time.Duration(o.calls())
		}
		charged += time.Duration(own) * mean
	}
	charged = min(charged, o.bound)
	o.total += charged
	o.prev, o.sent, o.bound = &in, map[string]int{}, 0
	return charged
}

// meanOf is the average time of a command since the INFO before this one.
func (o *ownCost) meanOf(in info, name string) (time.Duration, bool) {
	if o.prev == nil {
		return 0, false
	}
	before, _ := statOf(*o.prev, name)
	after, ok := statOf(in, name)
	calls, usec := after.calls-before.calls, after.usec-before.usec
	if !ok || calls <= 0 || usec < 0 {
		return 0, false // also after a CONFIG RESETSTAT
	}
	return time.Duration(usec / calls * float64(time.Microsecond)), true
}

// estimate is what the commands used since the last measurement have cost, for the end of a watch, when no INFO comes
// after them.
func (o *ownCost) estimate() time.Duration {
	var sum time.Duration
	for name, own := range o.sent {
		sum += time.Duration(own) * o.mean[name]
	}
	return min(sum, o.bound)
}

// of is what these commands cost as last measured; 0 for those that were not.
func (o *ownCost) of(cmds [][]string) time.Duration {
	var sum time.Duration
	for _, args := range cmds {
		sum += o.mean[statName(args)]
	}
	return sum
}

// leastOf is the least of what these commands cost in the last measurements, and whether each has more than one.
func (o *ownCost) leastOf(cmds [][]string) (sum time.Duration, sure bool) {
	sure = true
	for _, args := range cmds {
		last := o.last[statName(args)]
		if sure = sure && len(last) > 1; len(last) > 0 {
			sum += slices.Min(last)
		}
	}
	return sum, sure
}

func (o *ownCost) calls() int {
	n := 0
	for _, own := range o.sent {
		n += own
	}
	return n
}

// statOf finds a command in commandstats, by its own name or, before 7.0, by that of its container.
func statOf(in info, name string) (stat, bool) {
	container, _, _ := strings.Cut(name, "|")
	for _, n := range []string{name, container} {
		if calls, ok := in.numbers["cmdstat_"+n+".calls"]; ok {
			return stat{calls, in.numbers["cmdstat_"+n+".usec"]}, true
		}
	}
	return stat{}, false
}
