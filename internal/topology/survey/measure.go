package survey

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"slowpath/internal/source/server"
	"slowpath/internal/topology/cost"
	"slowpath/internal/wire/resp"
)

// maxMeasuredBytes bounds the replies of one measurement: of a map in which every slot is a range of its own a single
// CLUSTER SLOTS has 2 MB.
const maxMeasuredBytes = 512 << 10

// asker is the part of a session that measuring needs.
type asker interface {
	Pipeline(ctx context.Context, cmds [][]string) ([]resp.Value, error)
}

// measure has the server execute a command some times, between two looks at commandstats, all in one write: the server
// takes the commands of a pipeline one after the other, so that nobody else's are between them, and the difference is
// theirs alone even where commandstats know no subcommands (before 7.0).
func measure(ctx context.Context, s asker, c cost.Command, calls int) (cost.Measured, error) {
	info := []string{"INFO", "commandstats"}
	cmds := [][]string{info}
	for range calls {
		cmds = append(cmds, []string{"CLUSTER", strings.ToUpper(string(c))})
	}
	replies, err := s.Pipeline(ctx, append(cmds, info))
	if err != nil {
		return cost.Measured{}, fmt.Errorf("measuring %s: %w", c, err)
	}
	for _, r := range replies {
		if err := r.Err(); err != nil {
			return cost.Measured{}, fmt.Errorf("measuring %s: %w", c, err)
		}
	}
	before, after := server.ParseInfo(replies[0].Text()), server.ParseInfo(replies[len(replies)-1].Text())
	callsBefore, usecBefore, _, _ := before.Command(c.Stat())
	callsAfter, usecAfter, _, ok := after.Command(c.Stat())
	if !ok || callsAfter <= callsBefore || usecAfter < usecBefore {
		return cost.Measured{}, fmt.Errorf("measuring %s: the server counts no calls of it in INFO commandstats", c)
	}
	counted := callsAfter - callsBefore
	return cost.Measured{
		Command: c, Calls: calls, Bytes: textBytes(replies[1]), Alone: counted == float64(calls),
		PerCall: time.Duration((usecAfter - usecBefore) / counted * float64(time.Microsecond)),
	}, nil
}

const (
	batchTime = time.Millisecond // about what a batch may hold up the server
	batchMost = 20               // calls
)

// lowest measures a command in batches, and gives the cheapest of them: commandstats count the time on the wall, and
// what others on the server's host took of the CPU meanwhile is in it. The first call, in which caches fill, does not
// count. Between the batches the server serves others.
func lowest(ctx context.Context, s asker, c cost.Command, batches int) (cost.Measured, error) {
	first, err := measure(ctx, s, c, 1)
	if err != nil {
		return cost.Measured{}, err
	}
	calls := min(batchMost, max(1, int(batchTime/max(first.PerCall, time.Nanosecond))),
		max(1, maxMeasuredBytes/first.Bytes))
	best, total := cost.Measured{}, 1
	var each []time.Duration
	for range batches {
		m, err := measure(ctx, s, c, calls)
		if err != nil {
			return cost.Measured{}, err
		}
		total += calls
		each = append(each, m.PerCall)
		if best.Calls == 0 || m.Alone == best.Alone && m.PerCall < best.PerCall || m.Alone && !best.Alone {
			best = m
		}
	}
	best.Calls = total
	if best.PerCall*time.Duration(calls) < coarse {
		best.PerCall = max(trimmed(each), time.Microsecond/time.Duration(total))
	}
	return best, nil
}

// coarse is where the whole microseconds of commandstats are too coarse for the cheapest batch: a cached CLUSTER SLOTS
// takes a fraction of one, and many count as 0.
const coarse = 40 * time.Microsecond

// trimmed is the mean of all but the dearest quarter.
func trimmed(list []time.Duration) time.Duration {
	slices.Sort(list)
	list = list[:max(1, len(list)*3/4)]
	sum := time.Duration(0)
	for _, d := range list {
		sum += d
	}
	return sum / time.Duration(len(list))
}

// textBytes is about the size of a reply on the wire.
func textBytes(v resp.Value) int {
	const header = 5 // type, a length of one or two digits, and the line ends
	n := header + len(v.Str)
	for _, e := range v.Elems {
		n += textBytes(e)
	}
	return n
}
