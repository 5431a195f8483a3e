package law

import "slices"

// Grade is how well it is known that a piece of time belongs to a cause.
type Grade string

// The grades, the best first.
const (
	Seen       Grade = "seen"       // in the kernel, for these calls
	Counted    Grade = "counted"    // in the same window, by the server or the host
	Inferred   Grade = "inferred"   // from a pattern of calls
	Eliminated Grade = "eliminated" // no source saw another reason
)

// Grades are all, the best first.
var Grades = []Grade{Seen, Counted, Inferred, Eliminated}

// Weaker is the next grade below.
func (g Grade) Weaker() Grade { return Grades[min(g.rank()+1, len(Grades)-1)] }

// rank is 0 for the best grade.
func (g Grade) rank() int { return slices.Index(Grades, g) }
