package trace

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"slowpath/internal/recording"
)

// Filter selects calls. An empty field matches all; of a list one match is enough, except for Conditions, which must
// all hold.
type Filter struct {
	Commands   []string // "GET"; "CLUSTER" includes all of its subcommands
	Clients    []string // part of the client's address or of its process
	Nodes      []string // HOST:PORT, HOST or :PORT
	PID        int      // of the process that calls or serves
	Comm       string   // its name, as in ps
	Conditions []Condition
	Min, Max   time.Duration // duration of the call; a Max of 0 is none
}

// MatchesAll reports whether the filter matches all calls.
func (f Filter) matchesAll() bool {
	return len(f.Commands)+len(f.Clients)+len(f.Nodes)+len(f.Conditions) == 0 && f.Min == 0 && f.Max == 0 &&
		f.PID == 0 && f.Comm == ""
}

// Matches reports whether a call is selected.
func (f Filter) matches(c Call) bool {
	if c.Ns < int64(f.Min) || f.Max > 0 && c.Ns > int64(f.Max) {
		return false
	}
	for _, s := range f.Conditions {
		if !s.holds(c) {
			return false
		}
	}
	return f.matchesCommand(c.Op) && (f.matchesProcess(c.Process) || f.matchesProcess(c.server)) &&
		(len(f.Clients) == 0 || slices.ContainsFunc(f.Clients, func(part string) bool {
			return containsFold(c.Client,
				part) || containsFold(c.Process, part)
		})) &&
		(len(f.Nodes) == 0 || slices.ContainsFunc(f.Nodes, func(n string) bool { return isNode(c.Node, n) }))
}

func (f Filter) matchesCommand(op string) bool {
	return len(f.Commands) == 0 || slices.ContainsFunc(f.Commands, func(want string) bool {
		want = strings.ToUpper(want)
		return op == want || strings.HasPrefix(op, want+" ")
	})
}

// matchesProcess reports whether a process such as "redis-cli[1234]" is selected. The kernel cuts names
// (TASK_COMM_LEN of include/linux/sched.h).
func (f Filter) matchesProcess(process string) bool {
	const longest = 15
	comm, pid := process, ""
	if i := strings.LastIndexByte(process, '['); i >= 0 {
		comm, pid = process[:i], strings.TrimSuffix(process[i+1:], "]")
	}
	return (f.Comm == "" || comm == f.Comm[:min(len(f.Comm), longest)]) && (f.PID == 0 || pid == strconv.Itoa(f.PID))
}

func containsFold(s, part string) bool {
	return strings.Contains(strings.ToLower(s), strings.ToLower(part))
}

// isNode reports whether a node's address matches HOST:PORT, HOST or :PORT.
func isNode(address, want string) bool {
	if address == want {
		return true
	}
	host, port, err := net.SplitHostPort(address)
	return err == nil && (host == strings.Trim(want, "[]") || ":"+port == want)
}

// Condition is one on a call's segments: at least AtLeast in an actor's state.
type Condition struct {
	Actor, State string        // empty: any
	AtLeast      time.Duration // 0: any time at all
}

var (
	actors = []string{
		recording.App, recording.Client, recording.Network, recording.Proxy, recording.Server,
		recording.Nobody,
	}
	states = []string{
		recording.PoolWait, recording.LoopWait, recording.LockWait, recording.Dial, recording.TLS, recording.Handshake,
		recording.RunQueue, recording.Out, recording.Back, recording.Way,
		recording.Retransmit, recording.Throttled, recording.Frozen, recording.Busy, recording.Blocked, recording.Exec,
		recording.Withheld, recording.AckWait, recording.Forward, recording.Send, recording.Receive,
		recording.OffCPU, recording.Unexplained,
	}
)

// ErrCondition is returned for a text that is no condition.
var ErrCondition = errors.New("write ACTOR.STATE, ACTOR or STATE, with a minimum if needed: server.busy>5ms")

// SegmentNames are the actors and states of which ParseCondition reads one or both.
func SegmentNames() []string { return slices.Concat(actors, states) }

// ParseCondition reads "server.busy>5ms", "network" or "unexplained>=1ms".
func ParseCondition(text string) (Condition, error) {
	var s Condition
	name, least, bounded := strings.Cut(text, ">")
	if bounded {
		d, err := time.ParseDuration(strings.TrimSpace(strings.TrimPrefix(least, "=")))
		if err != nil || d < 0 {
			return s, fmt.Errorf("%w; after > write a duration such as 5ms", ErrCondition)
		}
		s.AtLeast = d
	}
	name = strings.ToLower(strings.TrimSpace(name))
	actor, state, both := strings.Cut(name, ".")
	switch {
	case both && slices.Contains(actors, actor) && slices.Contains(states, state):
		s.Actor, s.State = actor, state
	case !both && slices.Contains(actors, name):
		s.Actor = name
	case !both && slices.Contains(states, name):
		s.State = name
	default:
		return s, fmt.Errorf("%w; actors are %s; states are %s", ErrCondition, strings.Join(actors, ", "),
			strings.Join(states, ", "))
	}
	return s, nil
}

func (s Condition) holds(c Call) bool {
	var ns int64
	for _, g := range c.Segments {
		if (s.Actor == "" || g.Actor == s.Actor) && (s.State == "" || g.State == s.State) {
			ns += g.Ns()
		}
	}
	return ns > 0 && ns >= int64(s.AtLeast)
}
