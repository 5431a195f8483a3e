package verdict

import (
	"fmt"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/format"
)

// expired says whose pool closed most connections for their age, where that is no finding, and how many others do so.
func expired(c *facts.Case) string {
	var most connection.Lifetimes
	callers := 0
	for _, n := range c.Nodes {
		for _, l := range connection.LifetimesOf(n, caller.Callers(n)) {
			if callers++; len(l.Closed) > len(most.Closed) {
				most = l
			}
		}
	}
	if callers == 0 {
		return ""
	}
	text := fmt.Sprintf(" %s closed %s at an age of about %s, and %s waited for new ones, %s each",
		format.Name(most.Name), format.Count(len(most.Closed), "connection"), format.Brief(most.Ages.P10),
		format.Count(len(most.Dialled), "call"),
		format.Brief(caller.PercentilesOf(most.Dialled, (*caller.Conn).OpeningNs).Median))
	if callers > 1 {
		text += fmt.Sprintf("; so did %s", format.Count(callers-1, "more caller"))
	}
	return text + "."
}
