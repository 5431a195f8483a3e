package web

import (
	"sync"
	"time"

	"slowpath/internal/live"
	"slowpath/internal/recording"
)

// maxCachedColumns bounds what is kept of columns that do not change any more: some 400 bytes each.
const maxCachedColumns = 8192

// columnCache keeps the columns that do not change any more, since a hundred browsers ask for the same ones, and a week
// has tens of thousands of histograms.
type columnCache struct {
	// Columns are added up one view after the other: the next one finds them. Long views do not hold up short ones.
	long, short sync.Mutex

	mu   sync.Mutex
	done map[columnKey]column
}

// longStep is from which step in seconds on a view is long: it has more than two days.
const longStep = 1800

type columnKey struct {
	start, step int64
	node        string
}

// column is a step, of users and of slowpath.
type column struct {
	start      int64
	seen       int64
	users, own Column
}

func newColumnCache() *columnCache { return &columnCache{done: map[columnKey]column{}} }

// of is what is shown of whose calls.
func (c column) of(whose live.Whose) Column {
	out := c.users
	if whose == live.Own {
		out = c.own
	}
	out.Start, out.Seen = time.Unix(c.start, 0).UTC(), c.seen
	if out.Counts == nil {
		out.Counts = []int64{}
	}
	return out
}

// sum adds up what a column has.
type sum struct {
	latencies    live.Latencies
	slow, failed int64
	maxNs, calls int64
}

// adding is a column that is being added up.
type adding struct {
	users, own sum
	seen       map[int64]int64 // seconds that a row is of, by its begin
}

// columnsOf are the columns of a view, from the history and, where it has no minutes yet, from the seconds in memory.
func (s *Server) columnsOf(v view) ([]column, error) {
	c := s.columns
	turn := &c.short
	if v.step >= longStep {
		turn = &c.long
	}
	turn.Lock()
	defer turn.Unlock()
	out := make([]column, (v.to-v.from)/v.step)
	missing := map[int64]*adding{}
	first, last := v.to, v.from
	for i := range out {
		start := v.from + int64(i)*v.step
		kept, ok := c.kept(columnKey{start, v.step, v.node})
		if out[i] = kept; !ok {
			missing[start] = &adding{seen: map[int64]int64{}}
			first, last = min(first, start), max(last, start+v.step)
		}
	}
	if len(missing) > 0 {
		if err := s.addUp(v, first, last, missing); err != nil {
			return nil, err
		}
	}
	final := s.finalBefore(v.step)
	for i := range out {
		start := v.from + int64(i)*v.step
		a := missing[start]
		if a == nil {
			continue
		}
		out[i] = column{start: start, users: a.users.column(), own: a.own.column()}
		for _, seconds := range a.seen {
			out[i].seen += seconds
		}
		if start+v.step <= final {
			c.keep(columnKey{start, v.step, v.node}, out[i])
		}
	}
	return out, nil
}

// finalBefore is the time in Unix seconds before which columns do not change any more.
func (s *Server) finalBefore(step int64) int64 {
	if step < secondsPerMinute {
		return s.o.View.Complete()
	}
	return s.o.Now().Unix() - secondsUntilMinute
}

func (c *columnCache) kept(k columnKey) (column, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one, ok := c.done[k]
	return one, ok
}

func (c *columnCache) keep(k columnKey, one column) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.done) >= maxCachedColumns {
		clear(c.done)
	}
	c.done[k] = one
}

// historyPart is how many seconds of the history are in memory at once: of eight nodes 4000 minutes, some 3 MB.
const historyPart = 8 * 3600

// addUp fills the columns that are missing, which begin in [first, last).
func (s *Server) addUp(v view, first, last int64, missing map[int64]*adding) error {
	seconds := first
	var reader recording.HistogramReader
	for from := first; v.step >= secondsPerMinute && s.o.History != nil && from < last; from += historyPart {
		minutes, err := s.o.History.Minutes(from, min(from+historyPart, last))
		if err != nil {
			return err
		}
		for _, m := range minutes {
			seconds = max(seconds, m.Start+secondsPerMinute)
			a := missing[m.Start/v.step*v.step]
			if a == nil || v.node != "" && v.node != m.Node {
				continue
			}
			a.seen[m.Start] = secondsPerMinute
			to := a.of(m.Own)
			reader.Each(m.HDR, to.latencies.Add)
			to.calls, to.slow, to.failed = to.calls+m.Calls, to.slow+m.Slow, to.failed+m.Failed
			to.maxNs = max(to.maxNs, m.MaxNs)
		}
	}
	for _, one := range s.o.View.Seconds(seconds, last) {
		a := missing[one.Unix/v.step*v.step]
		if a == nil || v.node != "" && v.node != one.Node {
			continue
		}
		a.seen[one.Unix] = 1
		to := a.of(one.Whose == live.Own)
		to.latencies.Merge(one.Latencies)
		to.calls, to.slow, to.failed = to.calls+one.Calls, to.slow+one.Slow, to.failed+one.Failed
		to.maxNs = max(to.maxNs, one.Latencies.MaxNs())
	}
	return nil
}

func (a *adding) of(own bool) *sum {
	if own {
		return &a.own
	}
	return &a.users
}

// column is what is shown of a sum.
func (s *sum) column() Column {
	c := Column{Calls: s.calls, Slow: s.slow, Failed: s.failed, MaxNs: s.maxNs}
	if s.latencies.Calls() == 0 {
		return c
	}
	c.P50Ns, c.P99Ns = min(s.latencies.Quantile(.5), s.maxNs), min(s.latencies.Quantile(.99), s.maxNs)
	c.Counts = make([]int64, len(rowsUpToNs))
	row := 0
	s.latencies.Each(func(fromNs, _, calls int64) {
		for row < len(rowsUpToNs)-1 && fromNs >= rowsUpToNs[row] {
			row++
		}
		c.Counts[row] += calls
	})
	return c
}
