// Package top is the live view of a watch in a terminal: what calls take now, whose they are, and what they wait for,
// renewed each second, with the verdict of the last seconds.
//
// Data go one way: the sources write into live.View and Window; Collector makes a Frame of the one each second, Judge a
// verdict of the other now and then; Model, a pure function of frames and keys, makes the screen.
package top

import (
	"time"

	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
)

// Frame is what one screen shows: the state of a watch at the end of a second.
type Frame struct {
	Time    time.Time     // the end of the last whole second
	Watched time.Duration // since the begin of the watch
	Target  string        // address of the first server
	Server  string        // "redis 7.0.15"
	Nodes   int           // servers that are watched
	SlowNs  int64         // a call of this many nanoseconds or more is slow
	// UsersUnseen says why the calls of users cannot be seen; empty where they can.
	UsersUnseen string

	Users, UsersMinute Numbers // of the last second, and of the last minute
	Own, OwnMinute     Numbers // slowpath's own calls
	Seconds            []HeatSecond
	HeatOwn            bool // Seconds are of slowpath's own calls, since those of users are not seen

	Calls    []Call // slow ones, of each stall the slowest, the newest first
	Callers  []Caller
	Commands []Command
	Waits    []Wait

	Verdict *Verdict // nil: there is none yet
	Cost    Cost
}

// Numbers are those of calls that ended within some seconds. Times are nanoseconds, 0 where there was no call.
type Numbers struct {
	Seconds int   `json:"seconds"`
	Calls   int64 `json:"calls"`
	Slow    int64 `json:"slow_calls"`
	Failed  int64 `json:"failed_calls"`
	P50Ns   int64 `json:"p50_ns"`
	P99Ns   int64 `json:"p99_ns"`
	MaxNs   int64 `json:"max_ns"`
}

// perSecond is how many calls ended in a second.
func (n Numbers) perSecond() float64 { return float64(n.Calls) / float64(max(1, n.Seconds)) }

// HeatSecond is how many calls of a second took how long.
type HeatSecond struct {
	Unix   int64
	Counts [heatLevels]int64 // by heatEdges
}

// Call is a slow call, the slowest of those that waited at one time for the same.
type Call struct {
	Number   uint64 // of the first of them, growing
	Others   int    // how many there are beside it
	Row      recording.Call
	Segments []recording.Segment
	// OwnDelayNs is the part of the call in which slowpath's own process waited for a CPU.
	OwnDelayNs int64
}

// Ns is how long the call took, from when it was due, without slowpath's own delay.
func (c Call) Ns() int64 { return c.Row.EndNs - c.Row.IntendedNs - c.OwnDelayNs }

// Caller is a process or a host that calls the servers. Its numbers are of the time that the view keeps.
type Caller struct {
	Name      string
	PerSecond float64
	Slow      int64
	LostNs    int64 // of its slow calls the time above the slow threshold
}

// Command is a command of a server, with the numbers of the last minute.
type Command struct {
	Node, Op string
	Numbers
}

// Wait is where the newest slow calls of the last minute were, and what they waited for.
type Wait struct {
	Actor, State, Culprit string
	Ns, Calls             int64
	Share                 float64 // of the time of all of these slow calls
}

// Verdict is a judgement of the last seconds.
type Verdict struct {
	Diagnosis verdict.Diagnosis
	At        time.Time     // the end of the time that was judged
	Of        time.Duration // how long that was
	Took      time.Duration // CPU time of judging
	Failed    string        // why it could not be judged; Diagnosis is empty then
}

// Cost is what slowpath takes of this host, each as a part of a core.
type Cost struct {
	Process  float64 // all of this process, in the last second
	Screen   float64 // of it for frames and screens, in the last minute
	Verdicts float64 // of it for verdicts, in the last minute
	Kernel   float64 // the kernel programs, beside this process; below 0: not measured
	Bytes    int64   // memory of this process
}
