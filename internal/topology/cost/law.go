package cost

import (
	"fmt"
	"math"
	"time"

	"slowpath/internal/format"
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

// fit finds the law with the least squares of relative errors, none of its parts negative: of all choices of parts that
// may be zero the best that is possible.
func fit(c Command, points []Point) law {
	best, least := law{command: c}, math.Inf(1)
	for chosen := 1; chosen < 1<<terms; chosen++ {
		usec, ok := leastSquares(c, points, chosen)
		l := law{command: c, usec: usec}
		if !ok {
			continue
		}
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

// leastSquares solves the normal equations for the chosen terms; the others are 0. It fails where a part would be
// negative.
func leastSquares(c Command, points []Point, chosen int) (usec [terms]float64, ok bool) {
	var m [terms][terms + 1]float64
	for _, p := range points {
		x := c.terms(p.Size)
		for i := range x {
			if chosen&(1<<i) == 0 {
				continue
			}
			for j := range x {
				if chosen&(1<<j) != 0 {
					m[i][j] += x[i] * x[j] / (p.PerCall * p.PerCall)
				}
			}
			m[i][terms] += x[i] / p.PerCall
		}
	}
	for i := range terms {
		if chosen&(1<<i) == 0 {
			m[i][i] = 1
		}
	}
	return solve(m)
}

// solve eliminates; it fails for a singular system, and for a negative part.
func solve(m [terms][terms + 1]float64) (x [terms]float64, ok bool) {
	for k := range terms {
		pivot := k
		for i := k + 1; i < terms; i++ {
			if math.Abs(m[i][k]) > math.Abs(m[pivot][k]) {
				pivot = i
			}
		}
		if math.Abs(m[pivot][k]) < 1e-15 {
			return x, false
		}
		m[k], m[pivot] = m[pivot], m[k]
		for i := range terms {
			if i == k {
				continue
			}
			f := m[i][k] / m[k][k]
			for j := k; j <= terms; j++ {
				m[i][j] -= f * m[k][j]
			}
		}
	}
	for i := range terms {
		if x[i] = m[i][terms] / m[i][i]; x[i] < 0 {
			return x, false
		}
	}
	return x, true
}

func microseconds(v float64) time.Duration { return time.Duration(v * float64(time.Microsecond)) }
