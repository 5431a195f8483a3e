package cause

// Bounds of a floor. Within a data centre a round trip takes 0.05-0.5 ms, between the zones of a region up to 1 ms.
const (
	floorNs     = int64(1e6) // Bound: guess, the upper end of the range above, of which no measurement is kept.
	floorOfWork = 10         // times the server's own time. Bound: guess.
	floorSteady = 2          // the median is at most this times the fastest call. Bound: guess.
	floorCalls  = 20         // the least number of calls that a floor is judged by. Bound: guess.
	// maxIdleDemand: of a core: with less demand the main thread is idle enough to answer at once.
	// Bound: guess, M/M/1 at 0.5: one call is in the system on average.
	maxIdleDemand = 0.5
)
