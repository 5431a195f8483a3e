package watch

import (
	"context"
	"strconv"
	"strings"
	"time"

	"slowpath/internal/wire/session"
)

const (
	// turnCost is what any command costs the server beside itself: to wake up, read the request and write the reply.
	// One after the other that is some 15 µs; of a server that sleeps in between, as most of its life it does, 60 to 90
	// µs (scripts/topology-watch: the nodes' CPU with a watch, by the number of its commands).
	turnCost = 80 * time.Microsecond
	// refused is the cost of a command that the node does not answer.
	refused = time.Hour
	// tries of each command, when it is measured what the commands cost.
	tries = 3
)

// costs are the CPU time that a command takes of the server, by pulse.
type costs [len(pulses)]time.Duration

// cheapest is the pulse that costs least.
func (c costs) cheapest() pulse {
	if c[byNodes] < c[bySlots] {
		return byNodes
	}
	return bySlots
}

// weigh measures on one node what each pulse costs, since it depends on version and map: CLUSTER SLOTS is the cheapest
// on Redis 5.0, 6.0, 7.0, 8.0 and Valkey 8.1 (which caches it), CLUSTER NODES on Redis 6.2, and wherever the slots are
// in pieces. The server's own count is taken (INFO commandstats), or where that is forbidden the time to the reply. A
// pulse that is refused costs more than any other.
func weigh(ctx context.Context, s *session.Session) (c costs, sent int, err error) {
	for p := range pulses {
		before, counted := spent(ctx, s, pulse(p))
		fastest := refused
		for range tries {
			_, timing, err := s.DoTimed(ctx, pulses[p].args...)
			sent++
			if err != nil {
				fastest = refused
				if broken(err) {
					return c, sent, err
				}
				break
			}
			fastest = min(fastest, timing.End.Sub(timing.Sent))
		}
		after, still := spent(ctx, s, pulse(p))
		sent += 2
		c[p] = fastest
		if calls := after.calls - before.calls; counted && still && calls > 0 && fastest < refused {
			c[p] = turnCost + (after.time-before.time)/time.Duration(calls)
		}
	}
	return c, sent, ctx.Err()
}

// stat is a line of INFO commandstats.
type stat struct {
	calls int64
	time  time.Duration
}

// spent asks what the server has spent on a pulse so far. Before Redis 7.0 it counts all subcommands of CLUSTER
// together.
func spent(ctx context.Context, s *session.Session, p pulse) (stat, bool) {
	reply, err := s.Do(ctx, "INFO", "commandstats")
	if err != nil {
		return stat{}, false
	}
	text := reply.Text()
	if got, ok := commandStat(text, pulses[p].stat); ok {
		return got, true
	}
	got, _ := commandStat(text, "cluster")
	return got, true // zero if it was never called
}

// commandStat parses a line such as cmdstat_cluster|slots:calls=3,usec=27,usec_per_call=9.00,…
func commandStat(text, name string) (stat, bool) {
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, "cmdstat_"+name+":calls=")
		if !ok {
			continue
		}
		calls, rest, _ := strings.Cut(rest, ",usec=")
		usec, _, _ := strings.Cut(rest, ",")
		n, err1 := strconv.ParseInt(calls, 10, 64)
		us, err2 := strconv.ParseInt(strings.TrimSpace(usec), 10, 64)
		if err1 != nil || err2 != nil || n < 0 || us < 0 || us > int64(time.Duration(1<<62)/time.Microsecond) {
			return stat{}, false
		}
		return stat{n, time.Duration(us) * time.Microsecond}, true
	}
	return stat{}, false
}
