package facts

import (
	"strconv"
	"strings"

	"slowpath/internal/recording"
)

// Demand is how much of the time the main thread had something to do, in cores: it ran, or it was ready and another
// task had the CPU.
type Demand struct {
	Run      float64 // on a CPU
	Wait     float64 // in the run queue, without what its cgroup was throttled; 0 where only the server was asked
	Source   string
	Measured bool // by the host's schedstat, or by the event loop's own clock (redis and valkey >= 7.2)
}

// Total is the part of the time in which the thread had work.
func (d Demand) Total() float64 { return min(d.Run+d.Wait, 1) }

// Demand is the main thread's over the watch; ok is false where nothing tells.
func (n *Node) Demand() (d Demand, ok bool) {
	if run := n.Host("main.run_ns"); len(run) >= 2 {
		wait := Rate(n.Host("main.delay_ns"))/1e9 - float64(n.StateNs(recording.KindThrottled))/1e9/n.Seconds()
		return Demand{Rate(run) / 1e9, max(wait, 0), recording.SourceHost, true}, true
	}
	cores, source, ok := n.MainCores()
	if !ok {
		return d, false
	}
	d = Demand{Run: cores, Source: source}
	if s := n.Info("eventloop_duration_sum"); len(s) >= 2 { // µs outside of epoll_wait
		d.Measured, d.Wait = true, max(Rate(s)/1e6-cores, 0)
	}
	return d, true
}

// heavy is a command that takes long each time, not often.
const longCommandUsec = 1000

// HeavyShare is the part of the watch that the loop spent on commands of a millisecond and more and on its own jobs:
// what another cause is named for.
func (n *Node) LongWorkShare() float64 {
	usec := 0.0
	for _, name := range n.Rec.Names(recording.SourceServer, n.Address, "cmdstat_") {
		base, ok := strings.CutSuffix(name, ".usec")
		if !ok {
			continue
		}
		all, calls := n.Growth(name), n.Growth(base+".calls")
		if calls > 0 && all/calls >= longCommandUsec {
			usec += all
		}
	}
	ms := n.Growth("expire_cycle_cpu_milliseconds") + n.Growth("total_eviction_exceeded_time") +
		n.Growth("total_active_defrag_time")
	return (usec/1e6 + ms/1e3) / n.Seconds()
}

// CommandUse is what one command took of the main thread.
type CommandUse struct {
	Name  string
	Calls float64
	Usec  float64
}

// TopCommand is the command that took most of the main thread's time in all.
func (n *Node) TopCommand() (top CommandUse) {
	for _, name := range n.Rec.Names(recording.SourceServer, n.Address, "cmdstat_") {
		base, ok := strings.CutSuffix(name, ".usec")
		if usec := n.Growth(name); ok && usec > top.Usec {
			top = CommandUse{
				strings.ToUpper(strings.ReplaceAll(strings.TrimPrefix(base, "cmdstat_"), "|", " ")),
				n.Growth(base + ".calls"), usec,
			}
		}
	}
	return top
}

// BytesPerCommand is what a command and its reply weigh on average.
func (n *Node) BytesPerCommand() float64 {
	bytes := n.Growth("total_net_output_bytes") + n.Growth("total_net_input_bytes")
	return bytes / max(n.Growth("total_commands_processed"), 1)
}

// ConfigInt is a parameter of CONFIG GET as a number, 0 where it is unknown.
func (n *Node) ConfigInt(name string) int {
	text, _ := n.Config(name)
	v, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return v
}
