package metrics

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// other has what belongs to names without a series of their own.
const other = "other"

// tally is what is counted of one command or caller.
type tally struct{ calls, slow, ns int64 }

func (t *tally) add(o tally) {
	t.calls += o.calls
	t.slow += o.slow
	t.ns += o.ns
}

// weight is how much a name matters: a slow call as much as a thousand others.
func (t tally) weight() int64 { return t.calls + 1000*t.slow }

// ranked counts by name, with a bounded number of names. A name keeps its series until another one, without a series,
// matters more than twice as much for rankSeconds. The series of the old name then ends, and that of the new one begins
// at zero: no counter goes back.
type ranked struct {
	limit  int
	since  int64 // second of the last ranking
	kept   map[string]*tally
	other  tally
	recent map[string]int64 // weight since the last ranking, of names of both kinds
}

const (
	rankSeconds     = 300
	candidatesTimes = 8 // as many names as have series are ranked at most
)

func newRanked(limit int) *ranked {
	return &ranked{limit: limit, kept: map[string]*tally{}, recent: map[string]int64{}}
}

func (r *ranked) add(name string, t tally) {
	if t == (tally{}) {
		return
	}
	name = label(name)
	if _, known := r.recent[name]; known || len(r.recent) < candidatesTimes*r.limit {
		r.recent[name] += t.weight()
	}
	k := r.kept[name]
	switch {
	case k == nil && (len(r.kept) >= r.limit || name == other):
		r.other.add(t)
		return
	case k == nil:
		k = &tally{}
		r.kept[name] = k
	}
	k.add(t)
}

// rank gives series to names that matter more than those that have one. now is in seconds.
func (r *ranked) rank(now int64) {
	if r.since == 0 {
		r.since = now
	}
	if now-r.since < rankSeconds {
		return
	}
	r.since = now
	byWeight := func(a, b string) int {
		return cmp.Or(cmp.Compare(r.recent[a], r.recent[b]), strings.Compare(a, b))
	}
	kept := slices.SortedFunc(maps.Keys(r.kept), byWeight)
	var without []string
	for name := range r.recent {
		if r.kept[name] == nil && name != other {
			without = append(without, name)
		}
	}
	slices.SortFunc(without, func(a, b string) int { return byWeight(b, a) })
	for i := range min(len(kept), len(without)) {
		if len(r.kept) < r.limit || r.recent[without[i]] <= 2*r.recent[kept[i]] {
			break
		}
		delete(r.kept, kept[i])
		r.kept[without[i]] = &tally{}
	}
	clear(r.recent)
}

// folded is how many names have no series of their own, of those that were seen since the last ranking.
func (r *ranked) folded() (n int) {
	for name := range r.recent {
		if r.kept[name] == nil {
			n++
		}
	}
	return n
}

// each visits all names that have a series, sorted, and then other, if anything counts as that.
func (r *ranked) each(visit func(name string, t tally)) {
	for _, name := range slices.Sorted(maps.Keys(r.kept)) {
		visit(name, *r.kept[name])
	}
	if r.other != (tally{}) {
		visit(other, r.other)
	}
}

// label makes a text of others a value of a label: valid, printable, and short.
func label(s string) string {
	const most = 64
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "")
	}
	return s
}
