package watch

import (
	"context"
	"strconv"
	"strings"
	"time"

	"slowpath/internal/wire/session"
)

const (
	// roundTripCost is what any command costs the server in addition to its execution: wake up, read the request, write
	// the reply. It is about 15 µs for back-to-back commands, and 60 to 90 µs for a server that sleeps in between, as
	// it does most of the time (scripts/topology-watch: CPU time of the nodes by the number of commands of a watch).
	roundTripCost = 80 * time.Microsecond
	// refusedCost stands for a command that the node refuses.
	refusedCost = time.Hour
	// callsPerCommand is how often each command is sent when its cost is measured.
	callsPerCommand = 3
)

// costs are the CPU time of the server for one call, by poll command.
type costs [len(pollCommands)]time.Duration

// cheapest is the command that costs least.
func (c costs) cheapest() pollCommand {
	if c[byNodes] < c[bySlots] {
		return byNodes
	}
	return bySlots
}

// measureCosts measures on one node what each poll command costs, which depends on version and map: CLUSTER SLOTS is
// the cheapest on Redis 5.0, 6.0, 7.0, 8.0 and Valkey 8.1 (which caches it), CLUSTER NODES on Redis 6.2, and on maps
// with many ranges of slots. It uses the server's own count (INFO commandstats), or if that is forbidden the time to
// the reply. A refused command costs more than any other.
func measureCosts(ctx context.Context, s *session.Session) (c costs, sent int, err error) {
	for p := range pollCommands {
		before, counted := spent(ctx, s, pollCommand(p))
		fastest := refusedCost
		for range callsPerCommand {
			_, timing, err := s.DoTimed(ctx, pollCommands[p].args...)
			sent++
			if err != nil {
				fastest = refusedCost
				if broken(err) {
					return c, sent, err
				}
				break
			}
			fastest = min(fastest, timing.End.Sub(timing.Sent))
		}
		after, still := spent(ctx, s, pollCommand(p))
		sent += 2
		c[p] = fastest
		if calls := after.calls - before.calls; counted && still && calls > 0 && fastest < refusedCost {
			c[p] = roundTripCost + (after.time-before.time)/time.Duration(calls)
		}
	}
	return c, sent, ctx.Err()
}

// stat is a line of INFO commandstats.
type stat struct {
	calls int64
	time  time.Duration
}

// spent asks how much time the server has spent on a command so far. Before Redis 7.0 it counts all subcommands of
// CLUSTER together.
func spent(ctx context.Context, s *session.Session, p pollCommand) (stat, bool) {
	reply, err := s.Do(ctx, "INFO", "commandstats")
	if err != nil {
		return stat{}, false
	}
	text := reply.Text()
	if got, ok := commandStat(text, pollCommands[p].stat); ok {
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
