package cause

import (
	"fmt"
	"strings"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
)

// supportKeptBack names the commands.
func (f *Finding) supportKeptBack(cl facts.Claim, byOp map[string]int64) {
	if cl.Calls == 0 {
		return
	}
	ops := facts.SortedByNs(byOp)
	f.support(recording.SourceTap, fmt.Sprintf("%d calls of its clients were read by the server, which then slept "+
		"before it answered, up to %s: %s, which never block of themselves", cl.Calls, facts.Dur(cl.MaxNs),
		strings.Join(ops[:min(len(ops), 4)], ", ")), float64(cl.Calls), "calls")
}
