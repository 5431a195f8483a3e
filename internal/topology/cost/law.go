package cost

import (
	"fmt"
	"math"
	"slices"
	"time"

	"slowpath/internal/format"
	"slowpath/internal/stats"
)

// terms is how many a law has.
const terms = 3

// law is what one call of a command costs by the size of the map, in microseconds: a fixed part, one per node (of
// SLOTS: per master), and one per range of slots (of SLOTS: per entry, since it names the replicas of a master with
// each of its ranges).
//
// The first is the pass over the 16 384 slots, where a version has one for all; the second is the line of a node, up to
// 6.0 with a pass over the slots of its own; the third is the writing of ranges.
type law struct {
	command Command
	usec    [terms]float64
}

// terms of a size, as the command has them.
func (c Command) terms(s Size) [terms]float64 {
	if c == Slots {
		return [terms]float64{1, float64(s.Masters), float64(s.Entries)}
	}
	return [terms]float64{1, float64(s.Nodes), float64(s.Ranges)}
}

// at is the cost of one call, in microseconds.
func (l law) at(s Size) float64 {
	sum := 0.0
	for i, x := range l.command.terms(s) {
		sum += l.usec[i] * x
	}
	return sum
}

// formula is the law for people, times a factor.
func (l law) formula(scale float64) string {
	units := [2]string{"nodes", "ranges"}
	if l.command == Slots {
		units = [2]string{"masters", "entries"}
	}
	return fmt.Sprintf("µs = %s + %s × %s + %s × %s", format.Digits(scale*l.usec[0]), format.Digits(scale*l.usec[1]),
		units[0], format.Digits(scale*l.usec[2]), units[1])
}

// termsToFit are all choices of the terms that a law has; the other terms are zero.
var termsToFit = [][]int{{0}, {1}, {0, 1}, {2}, {0, 2}, {1, 2}, {0, 1, 2}}

// fit finds the law with the least squares of relative errors, none of its parts negative: of all choices of parts that
// may be zero the best that is possible.
func fit(c Command, points []Point) law {
	var equations stats.LeastSquares
	for _, p := range points {
		equations.Add(c.terms(p.Size), p.PerCall, p.PerCall)
	}
	best, least := law{command: c}, math.Inf(1)
	for _, free := range termsToFit {
		usec, ok := equations.Solve(free)
		if !ok || slices.Min(usec[:]) < 0 {
			continue
		}
		l := law{command: c, usec: usec}
		if sum := squares(l, points); sum < least {
			best, least = l, sum
		}
	}
	return best
}

func squares(l law, points []Point) float64 {
	sum := 0.0
	for _, p := range points {
		e := l.at(p.Size)/p.PerCall - 1
		sum += e * e
	}
	return sum
}

func microseconds(v float64) time.Duration { return time.Duration(v * float64(time.Microsecond)) }
