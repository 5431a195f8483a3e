package verdict

import (
	"fmt"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/format"
)

// expired says which callers' pools close connections for their age, where that is no finding.
func expired(c *facts.Case) (text string) {
	for _, n := range c.Nodes {
		for _, l := range n.Lifetimes(n.Callers()) {
			opening := facts.PercentilesOf(l.Dialled, (*facts.Conn).OpeningNs)
			text += fmt.Sprintf(" %s closed %s at an age of about %s, and %s waited for new ones, %s each.",
				format.Name(l.Name), format.Count(len(l.Closed), "connection"), format.Brief(l.Ages.P10),
				format.Count(len(l.Dialled), "call"), format.Brief(opening.Median))
		}
	}
	return text
}
