package report

import (
	"math"
	"strings"

	"slowpath/internal/diagnose/verdict"
)

const (
	maxRows  = 8
	tinyPart = 200 // a segment shorter than this part of its call is tiny
)

// row is one or several segments of a call that follow each other; it is named after the longest of them.
type row struct {
	actor, state, culprit string
	fromNs, toNs          int64
	longest               int64 // length of the segment that gave the name
	others                int   // segments merged into it
}

func (r row) ns() int64 { return r.toNs - r.fromNs }

// rows are the lines of a call's waterfall, at most maxRows: where there are more segments, first tiny ones that follow
// each other become one row, then the shortest joins its shorter neighbour until they fit.
func rows(c verdict.Worst) []row {
	out := make([]row, 0, len(c.Segments))
	for _, s := range c.Segments {
		r := row{
			actor: s.Actor, state: s.State, culprit: s.Culprit, fromNs: within(s.FromNs, c.Ns),
			toNs: within(s.ToNs, c.Ns),
		}
		if s.Node != "" {
			r.culprit = strings.TrimSpace(r.culprit + " at " + s.Node)
		}
		r.toNs = max(r.toNs, r.fromNs)
		r.longest = r.ns()
		out = append(out, r)
	}
	if len(out) <= maxRows {
		return out
	}
	tiny := c.Ns / tinyPart
	var fewer []row
	for _, r := range out {
		if n := len(fewer) - 1; n >= 0 && fewer[n].ns() <= tiny && r.ns() <= tiny {
			fewer[n] = join(fewer[n], r)
		} else {
			fewer = append(fewer, r)
		}
	}
	for len(fewer) > maxRows {
		i := shortest(fewer)
		fewer[i] = join(fewer[i], fewer[i+1])
		fewer = append(fewer[:i+1], fewer[i+2:]...)
	}
	return fewer
}

// within brings a time into the call; a damaged file may hold anything.
func within(ns, callNs int64) int64 { return max(0, min(ns, callNs)) }

// join makes one row of two neighbours, named after the longer one's segment.
func join(a, b row) row {
	from, to := min(a.fromNs, b.fromNs), max(a.toNs, b.toNs)
	others := a.others + b.others + 1
	if b.longest > a.longest {
		a = b
	}
	a.fromNs, a.toNs, a.others = from, to, others
	return a
}

// shortest is the index of the first of the two neighbours to join: the shortest row and the shorter of its
// neighbours.
func shortest(rows []row) int {
	at := 0
	for i, r := range rows {
		if r.ns() < rows[at].ns() {
			at = i
		}
	}
	before, after := int64(math.MaxInt64), int64(math.MaxInt64)
	if at > 0 {
		before = rows[at-1].ns()
	}
	if at < len(rows)-1 {
		after = rows[at+1].ns()
	}
	if before <= after {
		return at - 1
	}
	return at
}
