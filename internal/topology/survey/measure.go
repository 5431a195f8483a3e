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

// maxMeasuredBytes bounds the replies of one measurement: where every slot is a range of its own, one CLUSTER SLOTS
// has 2 MB.
const maxMeasuredBytes = 512 << 10

// pipeliner is the part of a session that measuring needs.
type pipeliner interface {
	Pipeline(ctx context.Context, cmds [][]string) ([]resp.Value, error)
}

// measure sends a command several times between two INFO commandstats, all in one write. The server executes the
// commands of a pipeline without those of others between them, so the difference is theirs alone even where
// commandstats has no subcommands (before 7.0).
func measure(ctx context.Context, s pipeliner, c cost.Command, calls int) (cost.Measured, error) {
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
		Command: c, Calls: calls, Bytes: replyBytes(replies[1]), Alone: counted == float64(calls),
		PerCall: time.Duration((usecAfter - usecBefore) / counted * float64(time.Microsecond)),
	}, nil
}

const (
	batchTime     = time.Millisecond // about how long a batch may block the server
	maxBatchCalls = 20               // calls
)

// measureLowest measures a command in batches, and gives the cheapest of them: commandstats counts wall-clock time,
// which includes the time that other processes had the CPU. The first call, which fills caches, does not count. Between
// the batches the server serves others.
func measureLowest(ctx context.Context, s pipeliner, c cost.Command, batches int) (cost.Measured, error) {
	first, err := measure(ctx, s, c, 1)
	if err != nil {
		return cost.Measured{}, err
	}
	calls := min(maxBatchCalls, max(1, int(batchTime/max(first.PerCall, time.Nanosecond))),
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
	if best.PerCall*time.Duration(calls) < minCountedTime {
		best.PerCall = max(trimmedMean(each), time.Microsecond/time.Duration(total))
	}
	return best, nil
}

// minCountedTime of a batch: below it the whole microseconds of commandstats are too coarse. A cached CLUSTER SLOTS
// takes a fraction of one, and many calls count as 0.
const minCountedTime = 40 * time.Microsecond

// trimmedMean is the mean of all but the slowest quarter.
func trimmedMean(list []time.Duration) time.Duration {
	slices.Sort(list)
	list = list[:max(1, len(list)*3/4)]
	sum := time.Duration(0)
	for _, d := range list {
		sum += d
	}
	return sum / time.Duration(len(list))
}

// replyBytes is about the size of a reply on the wire.
func replyBytes(v resp.Value) int {
	const header = 5 // type, a length of one or two digits, and the line ends
	n := header + len(v.Str)
	for _, e := range v.Elems {
		n += replyBytes(e)
	}
	return n
}
