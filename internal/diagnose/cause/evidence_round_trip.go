package cause

import "slowpath/internal/diagnose/degree"

// Bounds of a floor.
const (
	// floorNs: within a data centre a round trip takes 0.05-0.5 ms, between the zones of a region up to 1 ms.
	// Bound: guess, the upper end; the round trips of many recordings, by where both ends are, would measure it.
	floorNs     = int64(1e6)
	floorOfWork = degree.Many // times the server's own time
	floorCalls  = degree.Many // the least number of calls that a floor is judged by
	// maxIdleDemand: of a core: with less demand the main thread is idle enough to answer at once.
	maxIdleDemand = degree.Most
)
